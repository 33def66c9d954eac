"""The rerank stage of the book service: a cross-encoder behind its own lane, on the same cores."""

from collections.abc import Sequence

from tailrace.apps.books.settings import SearchSettings
from tailrace.core.clock import Clock
from tailrace.models.port import Progress
from tailrace.search.rerank import Reranking
from tailrace.serve.exchange import Journey
from tailrace.serve.local_offers import LocalOffers
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import Terms

TOKENS_MAX = 128
"""Tokens of a document that are read."""


class LaneReranker:
    """See search.rerank.PassageReranker."""

    def __init__(self, served: ServedReranker, clock: Clock) -> None:
        self.name = served.served.info.name
        self.served = served
        self._clock = clock

    async def scores(self, query: str, passages: Sequence[str], deadline_s: float) -> list[float]:
        """Logits; what cannot be done in time is refused before it begins."""
        journey = Journey(self._clock)
        terms = Terms(deadline=self._clock.now() + deadline_s)
        made = await self.served.rerank(journey, query, passages, terms, text_max=TOKENS_MAX)
        return made.scores(raw=True)


def opened_reranker(
    settings: SearchSettings, local: LocalOffers, clock: Clock, progress: Progress
) -> LaneReranker | None:
    """The cross-encoder of the settings; None where they say off. Raises ModelUnavailable."""
    offer = settings.reranker()
    if offer is None:
        return None
    served = local.open(offer, progress)
    assert isinstance(served, ServedReranker)
    return LaneReranker(served, clock)


def stage(reranker: LaneReranker | None, settings: SearchSettings) -> Reranking | None:
    """The stage with its window and its time."""
    if reranker is None:
        return None
    return Reranking(reranker, settings.rerank_window, settings.rerank_ms / 1000)
