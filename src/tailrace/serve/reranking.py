"""A cross-encoder on offer: a query and texts in, a score for each text out; or texts against its labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.exchange import Journey
from tailrace.serve.served import INLINE_CHARS, Answered, Item, NotOffered, ServedModel, Terms


@dataclass(frozen=True, slots=True)
class Scored:
    """One score per pair, in order."""

    logits: FloatArray
    answered: Answered

    @property
    def probabilities(self) -> FloatArray:
        """The logistic function of the logits."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.logits.astype(np.float64))), np.float32)

    def scores(self, *, raw: bool) -> list[float]:
        """Probabilities, or the logits themselves."""
        return [float(score) for score in (self.logits if raw else self.probabilities)]

    def rows(self, labels: int, *, raw: bool) -> list[list[float]]:
        """The scores in rows of one for each label."""
        scores = self.scores(raw=raw)
        return [scores[at : at + labels] for at in range(0, len(scores), labels)]

    def best_first(self) -> list[int]:
        """Indices of the pairs, the best first; equal scores keep their order."""
        return [int(i) for i in np.argsort(-self.logits, kind="stable")]


class ServedReranker:
    """Scores pairs through the lane."""

    def __init__(
        self,
        served: ServedModel,
        model: OnnxCrossEncoder,
        threads: InferenceThreads,
        *,
        text_first: bool,
        labels: Sequence[str] = (),
    ) -> None:
        self.served = served
        self.model = model
        self.labels = tuple(labels)
        self.pair_labels = ("LABEL_0",)
        """What the one score of a pair is called."""
        self.text_first = text_first
        self.threads = threads

    @property
    def inputs_per_text(self) -> int:
        """Inputs of the model that a lone text makes: one with each label."""
        return len(self.labels)

    async def rerank(
        self,
        exchange: Journey,
        query: str,
        texts: Sequence[str],
        terms: Terms,
        *,
        left: bool = False,
        text_max: int | None = None,
    ) -> Scored:
        """How well each text fits the query; see ServedModel.answer for what it raises.

        Of a text at most `text_max` tokens are read; what is too much goes at its end, with `left` at
        its beginning.
        """

        def tokenize() -> list[Tokens]:
            asked = self.model.plain(query)
            return [
                self.model.fit(
                    asked,
                    self.model.plain(text),
                    text_first=self.text_first,
                    left=left,
                    text_max=text_max,
                )
                for text in texts
            ]

        pairs = [(query, text) for text in texts]
        return await self._score(exchange, tokenize, pairs, terms)

    async def score(
        self,
        exchange: Journey,
        pairs: Sequence[tuple[str, str]],
        terms: Terms,
        *,
        left: bool = False,
    ) -> Scored:
        """Scores of pairs, each in the order in which the model reads it; the longer one gives way."""

        def tokenize() -> list[Tokens]:
            return [self.model.fit_pair(first, second, left=left) for first, second in pairs]

        return await self._score(exchange, tokenize, pairs, terms)

    async def classify(
        self, exchange: Journey, texts: Sequence[str], terms: Terms, *, left: bool = False
    ) -> Scored:
        """Every text against every label of the offer: len(texts) * len(labels) scores.

        Raises:
            NotOffered: the offer has no labels; a cross-encoder reads pairs, a lone text is none.

        """
        if not self.labels:
            raise NotOffered(
                f"{self.served.name} reads pairs. Send pairs, or give the model `labels` in the "
                "configuration to have texts scored against them."
            )

        def tokenize() -> list[Tokens]:
            queries = [self.model.plain(label) for label in self.labels]
            read = [self.model.plain(text) for text in texts]
            return [
                self.model.fit(query, text, text_first=self.text_first, left=left)
                for text in read
                for query in queries
            ]

        pairs = [(label, text) for text in texts for label in self.labels]
        return await self._score(exchange, tokenize, pairs, terms)

    async def _score(
        self,
        exchange: Journey,
        tokenize: Callable[[], list[Tokens]],
        pairs: Sequence[tuple[str, str]],
        terms: Terms,
    ) -> Scored:
        characters = sum(len(first) + len(second) for first, second in pairs)
        self.served.foresee(exchange, pairs, characters, terms)
        with exchange.part("tokenize"):
            if characters <= INLINE_CHARS:
                made = tokenize()
            else:
                made = await exchange.unless_left(self.threads.call(tokenize))
            self.served.foresight.read(pairs, characters, sum(len(pair.ids) for pair in made))
        answered = await self.served.answer(exchange, [Item(tokens) for tokens in made], terms)
        return Scored(np.asarray(answered.values, np.float32).reshape(len(made)), answered)
