"""A classifier on offer: texts or pairs in, a score for each of its labels out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.models.classifier import Link, OnnxClassifier, scores
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.exchange import Exchange
from tailrace.serve.served import INLINE_CHARS, Answered, Item, ServedModel, Terms


@dataclass(frozen=True, slots=True)
class Classified:
    """A logit for every label of every input, in order."""

    logits: FloatArray
    """[inputs, labels], float32."""
    answered: Answered
    link: Link

    def rows(self, labels: int, *, raw: bool) -> list[list[float]]:
        """For every input its scores, or the logits themselves, in the order of the labels."""
        assert self.logits.shape[1] == labels
        made = self.logits if raw else scores(self.logits, self.link)
        return [[float(score) for score in row] for row in made]


class ServedClassifier:
    """Classifies through the lane."""

    inputs_per_text = 1
    """Inputs of the model that a lone text makes."""

    def __init__(
        self, served: ServedModel, model: OnnxClassifier, threads: InferenceThreads
    ) -> None:
        self.served = served
        self.model = model
        self.labels = model.labels
        self.pair_labels = model.labels
        self.threads = threads

    async def classify(
        self, exchange: Exchange, texts: Sequence[str], terms: Terms, *, left: bool = False
    ) -> Classified:
        """Scores of texts; see ServedModel.answer for what it raises."""

        def tokenize() -> list[Tokens]:
            return [self.model.tokens(text, left=left) for text in texts]

        return await self._classify(exchange, tokenize, sum(map(len, texts)), terms)

    async def score(
        self,
        exchange: Exchange,
        pairs: Sequence[tuple[str, str]],
        terms: Terms,
        *,
        left: bool = False,
    ) -> Classified:
        """Scores of pairs, each in the order in which the model reads it; the longer one gives way."""

        def tokenize() -> list[Tokens]:
            return [self.model.pair(first, second, left=left) for first, second in pairs]

        return await self._classify(
            exchange, tokenize, sum(len(a) + len(b) for a, b in pairs), terms
        )

    async def _classify(
        self,
        exchange: Exchange,
        tokenize: Callable[[], list[Tokens]],
        characters: int,
        terms: Terms,
    ) -> Classified:
        with exchange.part("tokenize"):
            if characters <= INLINE_CHARS:
                made = tokenize()
            else:
                made = await exchange.unless_left(self.threads.call(tokenize))
        answered = await self.served.answer(exchange, [Item(tokens) for tokens in made], terms)
        return Classified(np.stack(answered.values), answered, self.model.link)
