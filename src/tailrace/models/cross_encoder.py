"""A cross-encoder on ONNX Runtime: reads every pair of a text and a label, answers probabilities.

Knows nothing of lanes, doors or where the model came from.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tailrace.core.work import Run
from tailrace.models.batch import Row, run_rows
from tailrace.models.chunks import CHUNK_TOKENS
from tailrace.models.errors import BadOutput
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.session import Session
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, Tokens


class OnnxCrossEncoder:
    """Scores in sorted sub-batches over all inference threads."""

    def __init__(
        self,
        info: ModelInfo,
        session: Session,
        tokens: PairTokens,
        threads: InferenceThreads,
        *,
        owns_threads: bool = False,
        chunk_tokens: int = CHUNK_TOKENS,
    ) -> None:
        self._info = info
        self._session = session
        self._tokens = tokens
        self._threads = threads
        self._owns_threads = owns_threads
        self._chunk_tokens = chunk_tokens

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return self._info

    def score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """Calibrated probabilities, one array of len(labels) per text; see the port."""
        rows: list[Row] = []
        answers: list[FloatArray | Exception | None] = [None] * len(texts)
        for item, text in enumerate(texts):
            try:
                ids = self._tokens.text(text)
                rows += [Row(item, self._tokens.join(ids, label)) for label in labels]
            except Exception as error:  # noqa: BLE001 - it is this item's answer
                answers[item] = error
        run.mark("tokenize")
        outcomes = run_rows(rows, self._logits, self._threads, run, self._chunk_tokens)
        run.mark("infer")
        by_item: dict[int, list[FloatArray | Exception]] = {}
        for row, outcome in zip(rows, outcomes, strict=True):
            by_item.setdefault(row.item, []).append(outcome)
        finished = [
            answer if answer is not None else _probabilities(by_item.get(item, []))
            for item, answer in enumerate(answers)
        ]
        run.mark("post")
        return finished

    def padded_score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """The naive way: all pairs in one batch, padded to the longest, in one run on this thread.

        What the naive door does and what benchmarks compare with; the answers are the same.
        """
        rows = [
            self._tokens.join(ids, label)
            for ids in [self._tokens.text(text) for text in texts]
            for label in labels
        ]
        run.mark("tokenize")
        logits = self._logits(rows) if rows else np.empty(0, np.float32)
        run.mark("infer")
        parts = logits.reshape(len(texts), len(labels))
        answers = [_probabilities(list(part)) for part in parts]
        run.mark("post")
        return answers

    def logits(self, pairs: Sequence[Tokens]) -> FloatArray:
        """The raw outputs of one run, for probes and gates."""
        return self._logits(pairs)

    def pair(self, text: str, label: str) -> Tokens:
        """The input the model reads for one pair."""
        return self._tokens.join(self._tokens.text(text), label)

    def cost(self, text: str, labels: Sequence[str]) -> float:
        """Tokens the model will read for this text, padding not counted."""
        ids = self._tokens.text(text)
        return float(sum(self._tokens.count(ids, label) for label in labels))

    def close(self) -> None:
        """Let go of the weights; stop the threads if they are ours alone."""
        if self._owns_threads:
            self._threads.close()

    def found_invariant(self, *, invariant: bool) -> None:
        """Write down what the probe measured."""
        self._info = replace(self._info, batch_invariant=invariant)

    def _logits(self, pairs: Sequence[Tokens]) -> FloatArray:
        return self._session.run(pairs, "logits").reshape(len(pairs))


def _probabilities(outcomes: list[FloatArray | Exception]) -> FloatArray | Exception:
    """The probabilities of one text, or the first thing that went wrong with it."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            return outcome
    logits = np.asarray(outcomes, np.float64)
    if not np.isfinite(logits).all():
        return BadOutput("the model answered with a number that is not finite; run the model check")
    return (1 / (1 + np.exp(-logits))).astype(np.float32)
