"""The rerank stage: a model reads the query with each of the first documents again, in time or not at all.

Its scores order the first `window` of the fused list; equal ones, and all that follow, stand as they were
fused. What is late or refused leaves the fused order. Knows no model and no lane.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tailrace.search.fuse import Fused, Reread
from tailrace.search.passages import passage
from tailrace.stores.port import Document

TIES = "fused rank"
DEGRADED = "rerank"
"""How an answer says that it lacks this stage."""


class PassageReranker(Protocol):
    """Tells how well texts answer a query."""

    @property
    def name(self) -> str:
        """What it is called."""

    async def scores(self, query: str, passages: Sequence[str], deadline_s: float) -> list[float]:
        """One score for each, the higher the better, within so many seconds; raises TailraceError."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """Who rereads how many, and how long that may take."""

    reranker: PassageReranker
    window: int
    budget_s: float

    def told(self) -> dict[str, str | int]:
        """As an answer prints it."""
        return {"model": self.reranker.name, "window": self.window, "ties": TIES}

    async def reread(
        self, query: str, fused: Sequence[Fused], held: Mapping[str, Document]
    ) -> list[Fused]:
        """The list, its first `window` in the order of the scores; one not `held` goes last there.

        Raises TailraceError, TimeoutError.
        """
        head = [one for one in fused[: self.window] if one.id in held]
        gone = [one for one in fused[: self.window] if one.id not in held]
        async with asyncio.timeout(self.budget_s):
            texts = [passage(held[one.id]) for one in head]
            scores = await self.reranker.scores(query, texts, self.budget_s)
        told = [
            replace(one, reread=Reread(score, one.rank))
            for one, score in zip(head, scores, strict=True)
        ]
        told.sort(key=lambda one: (-one.reread.score if one.reread else 0.0, one.rank))
        ordered = [*told, *gone, *fused[self.window :]]
        return [replace(one, rank=rank) for rank, one in enumerate(ordered, 1)]
