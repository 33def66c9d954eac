"""A cross-encoder on ONNX Runtime: reads every pair of a text and a label, answers probabilities.

Knows nothing of lanes, doors or where the model came from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tailrace.core.work import Run
from tailrace.models.batch import Outcome, Row, run_rows
from tailrace.models.chunks import CHUNK_TOKENS
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import BadOutput
from tailrace.models.fusion import Fusion
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.session import Session
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, Tokens
from tailrace.models.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class _Batch:
    """What tokenising made of a batch: rows in the order of items and labels."""

    items: int
    rows: list[Row]
    texts: list[Row]
    """One row per readable item for the embedder, where there is a second opinion."""
    failed: dict[int, Exception]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A bilinear form to mix in, and the embedder whose vectors it reads."""

    fusion: Fusion
    embedder: OnnxEmbedder


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
        second: SecondOpinion | None = None,
    ) -> None:
        self._info = info
        self._session = session
        self._tokens = tokens
        self._threads = threads
        self._owns_threads = owns_threads
        self._chunk_tokens = chunk_tokens
        self._second = second

    @property
    def session(self) -> Session:
        """What runs it."""
        return self._session

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return self._info

    def score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """Calibrated probabilities, one array of len(labels) per text; see the port."""
        batch = self._tokenize(texts, labels)
        run.mark("tokenize")
        outcomes = run_rows(batch.rows, self.logits, self._threads, run, self._chunk_tokens)
        vectors: list[Outcome] = []
        if self._second is not None:
            self._second.fusion.prepare(labels)
            infer = self._second.embedder.unit_vectors
            vectors = run_rows(batch.texts, infer, self._threads, run, self._chunk_tokens)
        run.mark("infer")
        answers = self._answers(batch, labels, outcomes, vectors)
        run.mark("post")
        return answers

    def padded_score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """Score the naive way: all pairs in one batch, padded to the longest, on this thread.

        What the naive door does and what benchmarks compare with; the answers are the same.
        """
        batch = self._tokenize(texts, labels)
        run.mark("tokenize")
        pairs = [row.tokens for row in batch.rows]
        outcomes: list[Outcome] = list(self.logits(pairs)) if pairs else []
        vectors: list[Outcome] = []
        if self._second is not None and batch.texts:
            self._second.fusion.prepare(labels)
            inputs = [row.tokens for row in batch.texts]
            vectors = list(self._second.embedder.unit_vectors(inputs))
        run.mark("infer")
        answers = self._answers(batch, labels, outcomes, vectors)
        run.mark("post")
        return answers

    def logits(self, pairs: Sequence[Tokens]) -> FloatArray:
        """The raw outputs of one run, for probes and gates."""
        return self._session.run(pairs, "logits").reshape(len(pairs))

    def pair(self, text: str, label: str) -> Tokens:
        """The input the model reads for one pair."""
        return self._tokens.join(self._tokens.text(text), label)

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's own view of texts."""
        return self._tokens.vocabulary

    def plain(self, text: str) -> list[int]:
        """The ids of a text by itself, for `fit`."""
        return self._tokens.text(text)

    def fit_pair(self, first: str, second: str, *, left: bool = False) -> Tokens:
        """The input for two texts in this order; see PairTokens.fit_pair."""
        return self._tokens.fit_pair(first, second, left=left)

    def fit(
        self,
        query: Sequence[int],
        text: Sequence[int],
        *,
        text_first: bool,
        left: bool = False,
        text_max: int | None = None,
    ) -> Tokens:
        """The input for a query and a text of any length; see PairTokens.fit."""
        return self._tokens.fit(query, text, text_first=text_first, left=left, text_max=text_max)

    def cost(self, text: str, labels: Sequence[str]) -> float:
        """Tokens the model will read for this text, padding not counted."""
        ids = self._tokens.text(text)
        pairs = sum(self._tokens.count(ids, label) for label in labels)
        extra = 0.0 if self._second is None else self._second.embedder.cost(text, prompt="query")
        return pairs + extra

    def close(self) -> None:
        """Let go of the weights; stop the threads if they are ours alone."""
        self._session.close()
        if self._owns_threads:
            self._threads.close()

    def found_invariant(self, *, invariant: bool) -> None:
        """Write down what the probe measured."""
        self._info = replace(self._info, batch_invariant=invariant)

    def _tokenize(self, texts: Sequence[str], labels: Sequence[str]) -> _Batch:
        batch = _Batch(len(texts), [], [], {})
        for item, text in enumerate(texts):
            try:
                ids = self._tokens.text(text)
                rows = [Row(item, self._tokens.join(ids, label)) for label in labels]
                if self._second is not None:
                    tokens = self._second.embedder.tokens(text, prompt="query")
                    batch.texts.append(Row(item, tokens))
            except Exception as error:  # noqa: BLE001 - it is this item's answer
                batch.failed[item] = error
            else:
                batch.rows.extend(rows)
        return batch

    def _answers(
        self,
        batch: _Batch,
        labels: Sequence[str],
        outcomes: Sequence[Outcome],
        vectors: Sequence[Outcome],
    ) -> list[FloatArray | Exception]:
        """Put the rows' outcomes together, item by item, in order."""
        answers: dict[int, FloatArray | Exception] = dict(batch.failed)
        read = [item for item in range(batch.items) if item not in batch.failed]
        width = len(labels)
        for place, item in enumerate(read):
            logits = _whole(outcomes[place * width : (place + 1) * width])
            if self._second is not None and not isinstance(logits, Exception):
                vector = vectors[place]
                logits = (
                    vector
                    if isinstance(vector, Exception)
                    else self._second.fusion.mix(logits, vector, labels)
                )
            answers[item] = _probabilities(logits)
        return [answers[item] for item in range(batch.items)]


def _whole(outcomes: Sequence[Outcome]) -> Outcome:
    """The logits of one text, or the first thing that went wrong with it."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            return outcome
    return np.asarray(outcomes, np.float32)


def _probabilities(logits: Outcome) -> Outcome:
    if isinstance(logits, Exception):
        return logits
    if not np.isfinite(logits).all():
        return BadOutput()
    return np.asarray(1 / (1 + np.exp(-logits.astype(np.float64))), np.float32)
