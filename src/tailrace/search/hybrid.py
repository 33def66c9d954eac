"""Hybrid search: both legs of a store, fused, and an answer that says how it was made.

The keyword leg runs while the query is being embedded. Where no query vector comes in time, the answer
is the keyword leg's alone, and says so; never is another model asked. Knows no HTTP and no lane.
"""

import asyncio
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

from tailrace.core.clock import Clock
from tailrace.core.errors import InputError, TailraceError
from tailrace.core.work import Stamps
from tailrace.search.fuse import Fused, Votes, equal_votes, fuse
from tailrace.search.rerank import DEGRADED, Reranking
from tailrace.search.vote import VoteRule, asked_terms
from tailrace.stores.errors import SpaceMismatch
from tailrace.stores.port import (
    ALL,
    Document,
    Filter,
    KeywordLeg,
    Near,
    Space,
    Store,
    VectorLeg,
    Vectors,
)

Mode = Literal["hybrid", "keyword", "vector"]

WINDOW = 200
"""Documents that each leg gives, for every page of a query alike: so pages neither repeat nor leave gaps."""

HEAD_START_S = 0.001
"""How long what is done beside the embedding waits for it to begin.

It would hold the interpreter meanwhile. And it must wait asleep, on its own thread: one that is woken by
the event loop while the model begins is put on the model's core, where each waits for the other; one that
wakes by itself is put on the core that is idle then, the event loop's.
"""


class UnknownCategory(InputError):
    """There is no such category."""

    code = "unknown-category"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: `size` documents from the `page`-th page on, among those that `where` lets through."""

    text: str
    where: Filter = ALL
    page: int = 1
    size: int = 10
    mode: Mode = "hybrid"


@dataclass(frozen=True, slots=True)
class Found:
    """One document of a page."""

    document: Document
    fused: Fused


@dataclass(frozen=True, slots=True)
class Answer:
    """A page of results and how it came about."""

    found: list[Found]
    total: int
    """Documents on all pages together."""
    mode: Mode
    degraded: tuple[str, ...]
    """Why this is less than was asked for, by code; empty where it is not."""
    space: str | None
    """The fingerprint of the space that was searched."""
    exact: bool
    short: bool
    votes: Votes
    """What the fusion was made with."""
    trail: Stamps = field(repr=False)
    """Where the time went."""


class QueryEmbedder(Protocol):
    """Turns a query into a vector of its space, in time or not at all."""

    @property
    def space(self) -> Space:
        """The space of its vectors."""

    async def query(self, text: str, deadline: float) -> tuple[Vectors, Mapping[str, float]]:
        """One vector, and the seconds of its parts in order; raises TailraceError."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may take."""

    embed_s: float = 0.15
    """The longest the query vector is waited for."""


class HybridSearch:
    """Searches one store. Its methods are called on an event loop; the store works on `threads`.

    With `beside` the embedder's space is searched although another one is active: to judge it.
    """

    def __init__(
        self,
        store: Store,
        embedder: QueryEmbedder,
        threads: Executor,
        clock: Clock,
        *,
        vote: VoteRule | None = None,
        k: float = 20.0,
        budget: Budget | None = None,
        degraded: Callable[[str], object] = str,
        reranking: Reranking | None = None,
        beside: bool = False,
    ) -> None:
        self.store = store
        self.vote = vote or VoteRule()
        self.k = k
        self.budget = budget or Budget()
        self.reranking = reranking
        self._embedder = embedder
        self._threads = threads
        self._clock = clock
        self._tell_degraded = degraded
        self._near_in = partial(store.near, backfilling=beside)

    def without_rerank(self) -> "HybridSearch":
        """The same search, ending with the fusion."""
        made = copy.copy(self)
        made.reranking = None
        return made

    async def search(self, query: Query) -> Answer:
        """One page.

        Raises:
            UnknownCategory: the filter names one that is not there.
            StoreError: the store does not answer.

        """
        trail = Stamps(self._clock.now())
        terms = self.store.analyzer.query_terms(query.text)
        reasons: list[str] = []
        words: Future[_Words] | None = None
        ready: Future[Near] | None = None
        embedding: asyncio.Task[Vectors | None] | None = None
        vectors: Vectors | None = None
        try:
            if query.mode != "keyword":
                ready = Future()
                embedding = asyncio.create_task(self._embedded(query, trail, reasons))
            words = self._threads.submit(self._beside, query, terms, ready)
            if embedding is not None:
                vectors = await embedding
            on_thread = partial(asyncio.get_running_loop().run_in_executor, self._threads)
            rank = partial(self._rank, query, words, ready, vectors, reasons, trail)
            if not (count := self._to_reread(query)):
                return await on_thread(lambda: self._page(query, rank(), reasons, trail))
            ranked, held = await on_thread(lambda: self._first(rank(), count))
            ranked = await self._reread(query, ranked, held, reasons, trail)
            return await on_thread(self._page, query, ranked, reasons, trail)
        except BaseException:
            for under_way in (embedding, words):
                if under_way is not None:
                    under_way.cancel()
            raise

    def _beside(self, query: Query, terms: list[str], ready: "Future[Near] | None") -> "_Words":
        """What can be done while the query is embedded, once that has begun; on one of the threads.

        The space is made ready, then come the keyword leg and its votes.
        """
        if ready is not None:
            time.sleep(HEAD_START_S)
            try:
                ready.set_result(self._near_in(self._embedder.space, query.where))
            except Exception as error:  # noqa: BLE001 - raised where it is asked for
                ready.set_exception(error)
        if query.mode == "vector":
            return NO_WORDS
        leg = self.store.keyword(terms, WINDOW, query.where)
        asked = asked_terms(self.store.analyzer, query.text, terms)
        return _Words(leg, self.vote.votes(leg, asked))

    async def _embedded(self, query: Query, trail: Stamps, reasons: list[str]) -> Vectors | None:
        """The query's vector; where it does not come in time the reason is noted."""
        deadline = self._clock.now() + self.budget.embed_s
        try:
            vectors, parts = await self._embedder.query(query.text, deadline)
        except TailraceError as error:
            if isinstance(error, InputError):
                raise
            trail.close("embed-wait", self._clock.now())
            self._without(error, reasons, query)
            return None
        for part, seconds in parts.items():
            trail.close(part, trail.last + seconds)
        trail.close("embed-wait", self._clock.now())
        return vectors

    def _to_reread(self, query: Query) -> int:
        """How many of the best are reread: none where the page shows none of them."""
        stage = self.reranking
        if stage is None or query.mode != "hybrid":
            return 0
        return stage.window if (query.page - 1) * query.size < stage.window else 0

    def _first(self, ranked: "_Ranked", count: int) -> "tuple[_Ranked, dict[str, Document]]":
        """The ranking, with the documents that are to be reread: none where a leg is lacking."""
        ids = [one.id for one in ranked.fused[:count]] if ranked.near else []
        return ranked, {document.id: document for document in self.store.get(ids)}

    async def _reread(
        self,
        query: Query,
        ranked: "_Ranked",
        held: Mapping[str, Document],
        reasons: list[str],
        trail: Stamps,
    ) -> "_Ranked":
        """The ranking reread; as it was fused where that does not come in time."""
        if self.reranking is None or not held:
            return ranked
        try:
            fused = await self.reranking.reread(query.text, ranked.fused, held)
            return replace(ranked, fused=fused)
        except (TailraceError, TimeoutError):
            reasons.append(DEGRADED)
            self._tell_degraded(DEGRADED)
            return ranked
        finally:
            trail.close("rerank", self._clock.now())

    def _rank(
        self,
        query: Query,
        words: "Future[_Words]",
        ready: "Future[Near] | None",
        vectors: Vectors | None,
        reasons: list[str],
        trail: Stamps,
    ) -> "_Ranked":
        """The vector leg, and the fusion; on one of the threads.

        It may wait for what is done `_beside`: the threads take their work in order, so that has begun.
        """
        near = (
            None if ready is None or vectors is None else self._near(query, ready, vectors, reasons)
        )
        if vectors is not None:
            trail.close("vector", self._clock.now())
        found = words.result()
        trail.close("keyword", self._clock.now())
        leg = found.leg
        self._check(query.where, leg, near)
        votes = found.votes if near else equal_votes(leg.hits)
        hits = near.hits if near else ()
        fused = fuse(leg.hits, hits, votes, k=self.k, most=WINDOW)
        trail.close("fuse", self._clock.now())
        return _Ranked(leg, near, votes, fused)

    def _near(
        self, query: Query, ready: "Future[Near]", vectors: Vectors, reasons: list[str]
    ) -> VectorLeg | None:
        """The vector leg; where the vector is of another space the reason is noted."""
        try:
            return ready.result()(vectors, WINDOW)[0]
        except SpaceMismatch as error:
            self._without(error, reasons, query)
            return None

    def _without(self, error: TailraceError, reasons: list[str], query: Query) -> None:
        if query.mode == "vector":
            raise error
        reasons.append(error.code)
        self._tell_degraded(error.code)

    def _page(
        self, query: Query, ranked: "_Ranked", reasons: Sequence[str], trail: Stamps
    ) -> Answer:
        leg, near, fused = ranked.leg, ranked.near, ranked.fused
        page = fused[(query.page - 1) * query.size : query.page * query.size]
        held = {document.id: document for document in self.store.get([one.id for one in page])}
        trail.close("fetch", self._clock.now())
        return Answer(
            [Found(held[one.id], one) for one in page if one.id in held],
            len(fused),
            "hybrid" if near and query.mode == "hybrid" else "vector" if near else "keyword",
            tuple(reasons),
            near.space if near else None,
            leg.exact and (near is None or near.exact),
            near is not None and near.short,
            ranked.votes,
            trail,
        )

    def _check(self, where: Filter, leg: KeywordLeg, near: VectorLeg | None) -> None:
        """An empty result for a category that is not there is a mistake of the one who asks."""
        if where.category is None or leg.hits or (near and near.hits):
            return
        path = where.category.rstrip("/")
        known = self.store.categories()
        if not any(name == path or name.startswith(f"{path}/") for name in known):
            raise UnknownCategory(f"There is no category {path!r}; /api/books/stats lists them.")


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Both legs and what the fusion made of them."""

    leg: KeywordLeg
    near: VectorLeg | None
    votes: Votes
    fused: Sequence[Fused]


@dataclass(frozen=True, slots=True)
class _Words:
    """The keyword leg, and what it may vote where there is another one."""

    leg: KeywordLeg
    votes: Votes


NO_WORDS = _Words(KeywordLeg((), {}, exact=True), Votes((), 1.0))
