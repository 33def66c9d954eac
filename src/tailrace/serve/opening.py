"""Opens the models of the offers: each as what a lane needs of it, and as what the dialects are given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.models.classifier import OnnxClassifier
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.open_classifier import open_classifier
from tailrace.models.port import Progress
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.catalogue import Offer
from tailrace.serve.classifying import ServedClassifier
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import PIECEWISE, POOLED, Infer, ServedModel
from tailrace.serve.settings import BadConfiguration

SAMPLES = ("친절해요", "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요")
"""Texts of different lengths, to measure with."""

Model = OnnxEmbedder | OnnxCrossEncoder | OnnxClassifier


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that is open and has no lane yet."""

    model: Model
    infers: Mapping[str, Infer]
    """What may be asked of it, by kind."""
    samples: list[Tokens]
    offered: Callable[[ServedModel], Offer]
    """What the dialects are given, once there is a lane."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the models of the offers are opened."""

    embedder: Callable[..., OnnxEmbedder] = open_embedder
    cross_encoder: Callable[..., OnnxCrossEncoder] = open_cross_encoder
    classifier: Callable[..., OnnxClassifier] = open_classifier

    def open(
        self,
        offer: ModelOffer,
        threads: InferenceThreads,
        progress: Progress,
        cache_dir: Path | None,
    ) -> Opened:
        """The model of an offer; raises ModelUnavailable, and BadConfiguration for what does not fit it."""
        how: dict[str, Any] = {
            "threads": threads,
            "progress": progress,
            "cache_dir": cache_dir,
            "running": offer.running(),
        }
        if offer.kind == "embedding":
            return _embedding(offer, self.embedder(offer.source, **how), threads)
        if offer.kind == "classifier":
            return _classifier(self.classifier(offer.source, **how), threads)
        return _rerank(offer, self.cross_encoder(offer.source, **how), threads)


def _embedding(offer: ModelOffer, model: OnnxEmbedder, threads: InferenceThreads) -> Opened:
    if offer.default_prompt not in {None, *model.prompts}:
        known = ", ".join(model.prompts) or "none"
        why = f"{offer.name} knows no prompt {offer.default_prompt!r}; it knows: {known}"
        raise BadConfiguration([("models.default_prompt", why)])
    infers: dict[str, Infer] = {POOLED: model.vectors}
    if model.knows_tokens:
        infers[PIECEWISE] = model.token_vectors

    def offered(served: ServedModel) -> Offer:
        return ServedEmbedder(served, model, threads, default_prompt=offer.default_prompt)

    return Opened(model, infers, [model.tokens(text) for text in SAMPLES], offered)


def _rerank(offer: ModelOffer, model: OnnxCrossEncoder, threads: InferenceThreads) -> Opened:
    text_first = offer.pairs == "text-first"

    def offered(served: ServedModel) -> Offer:
        return ServedReranker(served, model, threads, text_first=text_first, labels=offer.labels)

    samples = [model.pair(text, "주차") for text in SAMPLES]
    return Opened(model, {POOLED: model.logits}, samples, offered)


def _classifier(model: OnnxClassifier, threads: InferenceThreads) -> Opened:
    def offered(served: ServedModel) -> Offer:
        return ServedClassifier(served, model, threads)

    return Opened(model, {POOLED: model.logits}, [model.tokens(text) for text in SAMPLES], offered)
