"""A cross-encoder on offer: a query and texts in, a score for each text out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.serve.exchange import Exchange
from tailrace.serve.served import INLINE_CHARS, Answered, Item, ServedModel, Terms


@dataclass(frozen=True, slots=True)
class Scored:
    """One score per pair, in order."""

    logits: FloatArray
    answered: Answered

    @property
    def probabilities(self) -> FloatArray:
        """The logistic function of the logits."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.logits.astype(np.float64))), np.float32)

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
    ) -> None:
        self.served = served
        self.model = model
        self._threads = threads
        self._text_first = text_first

    async def rerank(
        self, exchange: Exchange, query: str, texts: Sequence[str], terms: Terms
    ) -> Scored:
        """How well each text fits the query; see ServedModel.answer for what it raises."""
        return await self.score(exchange, [(query, text) for text in texts], terms)

    async def score(
        self, exchange: Exchange, pairs: Sequence[tuple[str, str]], terms: Terms
    ) -> Scored:
        """Scores of (query, text) pairs."""

        def tokenize() -> list[Item]:
            ordered = [(b, a) if self._text_first else (a, b) for a, b in pairs]
            made = [self.model.pair(first, second) for first, second in ordered]
            return [Item(tokens, tokens.cut > 0) for tokens in made]

        with exchange.part("tokenize"):
            if sum(len(a) + len(b) for a, b in pairs) <= INLINE_CHARS:
                items = tokenize()
            else:
                items = await exchange.unless_left(self._threads.call(tokenize))
        answered = await self.served.answer(exchange, items, terms)
        return Scored(np.asarray(answered.values, np.float32).reshape(len(pairs)), answered)
