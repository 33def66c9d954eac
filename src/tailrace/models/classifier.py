"""A classifier on a runtime: texts or pairs in, a number for every label out.

Knows nothing of lanes, doors or where the model came from.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.session import Session
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, TextTokens, Tokens
from tailrace.models.vocabulary import Vocabulary

LOGITS = "logits"
Link = Literal["softmax", "sigmoid", "identity"]
"""What turns logits into scores."""
LINKS: dict[str, Link] = {
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
    "regression": "identity",
}


def link_of(problem_type: str | None, labels: int) -> Link:
    """As `transformers` decides: by the kind of problem, where that is not said by the number of labels."""
    return LINKS.get(problem_type or "", "softmax" if labels > 1 else "sigmoid")


class OnnxClassifier:
    """Gives every input a logit for each of its labels."""

    def __init__(
        self,
        info: ModelInfo,
        session: Session,
        tokens: TextTokens,
        pairs: PairTokens,
        threads: InferenceThreads,
        *,
        labels: Sequence[str],
        problem_type: str | None,
        owns_threads: bool = False,
    ) -> None:
        self._info = info
        self._session = session
        self._tokens = tokens
        self._pairs = pairs
        self._threads = threads
        self._owns_threads = owns_threads
        width = self.logits([self.tokens("a")]).shape[1]
        self.labels = tuple(labels) or tuple(f"LABEL_{number}" for number in range(width))
        if len(self.labels) != width:
            raise ModelUnavailable(
                f"{info.name} gives {width} logits and its config.json names {len(self.labels)} "
                "labels; mend id2label"
            )
        self.link = link_of(problem_type, width)

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return self._info

    @property
    def session(self) -> Session:
        """What runs it."""
        return self._session

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's own view of texts."""
        return self._tokens.vocabulary

    def tokens(self, text: str, *, left: bool = False) -> Tokens:
        """The input for one text; `left` cuts what is too long at its beginning."""
        return self._tokens.encode("", text, left=left)

    def pair(self, first: str, second: str, *, left: bool = False) -> Tokens:
        """The input for a pair; the longer of the two gives way."""
        return self._pairs.fit_pair(first, second, left=left)

    def logits(self, batch: Sequence[Tokens]) -> FloatArray:
        """One run: [inputs, labels]."""
        made = self._session.run(batch, LOGITS)
        return np.asarray(made.reshape(len(batch), -1), np.float32)

    def close(self) -> None:
        """Let go of the weights; stop the threads if they are ours alone."""
        self._session.close()
        if self._owns_threads:
            self._threads.close()

    def found_invariant(self, *, invariant: bool) -> None:
        """Write down what the probe measured."""
        self._info = replace(self._info, batch_invariant=invariant)


def scores(logits: FloatArray, link: Link) -> FloatArray:
    """Scores of [inputs, labels] logits, in float64 on the way."""
    wide = logits.astype(np.float64)
    if link == "softmax":
        raised = np.exp(wide - wide.max(axis=1, keepdims=True))
        wide = raised / raised.sum(axis=1, keepdims=True)
    elif link == "sigmoid":
        # Of the two forms each is exact where the other overflows.
        small = np.exp(-np.abs(wide))
        wide = np.where(wide >= 0, 1.0, small) / (1.0 + small)
    return np.asarray(wide, np.float32)
