"""Builds the offers of models of this machine: weights, lane, door, readiness, on one budget of cores."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.cache.memory import MemoryCache
from tailrace.core.batch import BatchRule
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import RunFinished
from tailrace.core.lane import Lane
from tailrace.core.slots import Slots
from tailrace.models.calibration import TOKENS_DEFAULT, kept
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.port import ModelInfo, Progress
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.doors import Door
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.local_settings import ModelOffer, ReadySettings
from tailrace.serve.readiness import Readiness
from tailrace.serve.remote_offers import Surroundings
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import PIECEWISE, POOLED, Infer, ServedModel, runner
from tailrace.serve.settings import BadConfiguration

SAMPLES = ("친절해요", "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요")


@dataclass(frozen=True, slots=True)
class Opening:
    """How the models of the offers are opened."""

    embedder: Callable[..., OnnxEmbedder] = open_embedder
    cross_encoder: Callable[..., OnnxCrossEncoder] = open_cross_encoder


@dataclass(slots=True)
class LocalOffers:
    """Opens models one by one; all share the threads and the budget."""

    around: Surroundings
    threads: InferenceThreads
    cache_dir: Path | None
    ready: ReadySettings
    opening: Opening = Opening()
    budget: Slots = field(init=False)
    lanes: list[Lane] = field(init=False, default_factory=list)
    readiness: list[Readiness] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """One slot for each thread."""
        self.budget = Slots(self.threads.count)

    def embedder(self, offer: ModelOffer, progress: Progress) -> ServedEmbedder:
        """An embedding model behind its lane.

        Raises:
            BadConfiguration: the model knows no such prompt.
            TailraceError: the model cannot be opened.

        """
        model = self.opening.embedder(
            offer.source, threads=self.threads, progress=progress, cache_dir=self.cache_dir
        )
        if offer.default_prompt not in {None, *model.prompts}:
            known = ", ".join(model.prompts) or "none"
            why = f"{offer.name} knows no prompt {offer.default_prompt!r}; it knows: {known}"
            raise BadConfiguration([("models.default_prompt", why)])
        samples = [model.tokens(text) for text in SAMPLES]
        infers: dict[str, Infer] = {POOLED: model.vectors}
        if model.knows_tokens:
            infers[PIECEWISE] = model.token_vectors
        served = self._serve(offer, infers, samples, model.info)
        return ServedEmbedder(served, model, self.threads, default_prompt=offer.default_prompt)

    def reranker(self, offer: ModelOffer, progress: Progress) -> ServedReranker:
        """A cross-encoder behind its lane. Raises TailraceError where it cannot be opened."""
        encoder = self.opening.cross_encoder(
            offer.source, threads=self.threads, progress=progress, cache_dir=self.cache_dir
        )
        samples = [encoder.pair(text, "주차") for text in SAMPLES]
        served = self._serve(offer, {POOLED: encoder.logits}, samples, encoder.info)
        return ServedReranker(
            served,
            encoder,
            self.threads,
            text_first=offer.pairs == "text-first",
            labels=offer.labels,
        )

    def _serve(
        self,
        offer: ModelOffer,
        infers: Mapping[str, Infer],
        samples: list[Tokens],
        info: ModelInfo,
    ) -> ServedModel:
        runs = offer.runs
        tokens_max = runs.tokens_max
        if tokens_max is None:
            known = kept(info.fingerprint, self.cache_dir)
            tokens_max = known.tokens_max if known else TOKENS_DEFAULT
        lane = Lane(
            offer.name,
            runner(infers, self.threads),
            clock=self.around.clock,
            slots=self.threads.count,
            budget=self.budget,
            batch=BatchRule(runs.items_max, tokens_max, runs.window_ms / 1000, padded=True),
            service=_measured(infers[POOLED], samples),
            events=self.around.events,
            waiting_max=offer.door.seats(4096) + self.threads.count,
        )
        self.lanes.append(lane)
        readiness = Readiness(
            lane,
            lambda: self.threads.call(infers[POOLED], samples[:1]),
            self.around.clock,
            recent_s=self.ready.recent_s,
            stuck_s=self.ready.stuck_s,
        )
        self.around.events.subscribe(readiness, RunFinished)
        self.readiness.append(readiness)
        door = Door(offer.name, lane, offer.door.admission(), seats=offer.door.seats(4096))
        return ServedModel(
            offer.name,
            info,
            lane,
            door,
            cache=MemoryCache(self.around.cache_entries),
            clock=self.around.clock,
            bulk_yields=self.around.bulk_yields,
        )


def _measured(infer: Infer, samples: list[Tokens]) -> ServiceTime:
    """How long runs take here, from a few of different sizes."""
    service = ServiceTime()
    for batch in (samples[:1], samples[1:], samples[1:] * 4, samples[:1], samples[1:]):
        began = time.monotonic()
        infer(batch)
        longest = max(len(tokens.ids) for tokens in batch)
        service.learn(float(longest * len(batch)), time.monotonic() - began)
    return service
