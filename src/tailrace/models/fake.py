"""A model that is none: answers at once or after a scripted time, the same answer for the same text.

Ships, so that lanes, doors and whole boxes can be tried without weights. Fails on request: one item,
a whole run, or whatever run holds a poison text.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tailrace.core.errors import ModelError
from tailrace.core.work import Run
from tailrace.models.errors import Abandoned, UnknownPrompt
from tailrace.models.port import FloatArray, ModelInfo

Seconds = float | Sequence[float] | Callable[[Sequence[str]], float]
"""A run's service time: always the same, run by run (the last one repeats), or by its texts."""


class _Script:
    """What both fakes do alike: take their time, keep count, fail when told."""

    def __init__(
        self,
        seconds: Seconds,
        wait: Callable[[float], None],
        failing: Mapping[str, Exception],
        poison: Collection[str],
    ) -> None:
        self._seconds = seconds
        self._wait = wait
        self._failing = dict(failing)
        self._poison = frozenset(poison)
        self._crashes: list[Exception] = []
        self._lock = threading.Lock()
        self.runs: list[list[str]] = []
        """The texts of every run so far, in order."""

    def crash_next(self, error: Exception | None = None) -> None:
        """Let the next run die as a whole."""
        self._crashes.append(error or ModelError("the fake model was told to crash"))

    def play(
        self, texts: Sequence[str], run: Run, answer: Callable[[str], FloatArray]
    ) -> list[FloatArray | Exception]:
        """One run: waits its time in equal shares, one per text, skipping what nobody wants."""
        with self._lock:
            number = len(self.runs)
            self.runs.append(list(texts))
            crash = self._crashes.pop(0) if self._crashes else None
        run.mark("tokenize")
        share = self._time_of(number, texts) / max(1, len(texts))
        if crash is not None:
            raise crash
        answers: list[FloatArray | Exception] = []
        for index, text in enumerate(texts):
            if not run.wanted(index):
                answers.append(Abandoned())
                continue
            self._wait(share)
            if text in self._poison:
                raise ModelError("a poison text killed the run")
            failure = self._failing.get(text)
            answers.append(answer(text) if failure is None else failure)
        run.mark("infer")
        run.mark("post")
        return answers

    def _time_of(self, number: int, texts: Sequence[str]) -> float:
        if callable(self._seconds):
            return self._seconds(texts)
        if isinstance(self._seconds, int | float):
            return float(self._seconds)
        return self._seconds[min(number, len(self._seconds) - 1)] if self._seconds else 0.0


class FakeCrossEncoder:
    """A CrossEncoder whose scores come from a hash of the text and the label."""

    def __init__(
        self,
        *,
        seconds: Seconds = 0.0,
        wait: Callable[[float], None] = time.sleep,
        failing: Mapping[str, Exception] | None = None,
        poison: Collection[str] = (),
    ) -> None:
        self.script = _Script(seconds, wait, failing or {}, poison)

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return _info("fake-cross-encoder", "cross-encoder")

    def score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """Probabilities that depend on the text and the label only; see the port."""
        return self.script.play(texts, run, lambda text: _scores(text, labels))

    def cost(self, text: str, labels: Sequence[str]) -> float:
        """A token for every four characters of every pair."""
        return float(sum(_tokens(text) + _tokens(label) for label in labels))

    def close(self) -> None:
        """Nothing to let go of."""


class FakeEmbedder:
    """An Embedder whose unit vectors come from a hash of the text."""

    def __init__(
        self,
        *,
        dimensions: int = 8,
        seconds: Seconds = 0.0,
        wait: Callable[[float], None] = time.sleep,
        failing: Mapping[str, Exception] | None = None,
        poison: Collection[str] = (),
    ) -> None:
        self.script = _Script(seconds, wait, failing or {}, poison)
        self._dimensions = dimensions

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return _info("fake-embedder", "embedding")

    def embed(
        self, texts: Sequence[str], run: Run, *, prompt: str | None = None
    ) -> list[FloatArray | Exception]:
        """Unit vectors that depend on the text and the prompt only; see the port."""
        if prompt not in {None, "query", "passage"}:
            raise UnknownPrompt(f"the fake knows query and passage, not {prompt!r}")
        return self.script.play(texts, run, lambda text: self._vector(f"{prompt}\0{text}"))

    def cost(self, text: str, *, prompt: str | None = None) -> float:
        """A token for every four characters."""
        del prompt
        return float(_tokens(text))

    def close(self) -> None:
        """Nothing to let go of."""

    def _vector(self, text: str) -> FloatArray:
        vector = np.random.default_rng(_seed(text)).normal(size=self._dimensions)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _scores(text: str, labels: Sequence[str]) -> FloatArray:
    whole = float(1 << 64)
    return np.asarray([_seed(f"{text}\0{label}") / whole for label in labels], np.float32)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")


def _tokens(text: str) -> int:
    return 2 + len(text) // 4


def _info(name: str, kind: str) -> ModelInfo:
    return ModelInfo(
        name=name,
        source="fake",
        kind=kind,
        fingerprint=name,
        size_bytes=0,
        quantisation="none",
        max_tokens=512,
        batch_invariant=True,
        detail={"prompts": {"query": "", "passage": ""}} if kind == "embedding" else {},
    )
