"""The search lane and its door: what a caller and a turn ask of the hybrid search.

It knows nothing of documents coming in, of language models or of covers.
"""

from collections.abc import Sequence
from dataclasses import asdict

from tailrace.apps.books.settings import SearchSettings
from tailrace.apps.books.turn.spec import SearchSpec
from tailrace.apps.books.turn.turn import Found
from tailrace.cache.memory import MemoryCache
from tailrace.core.clock import Clock
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Events
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work, unfolded
from tailrace.search.hybrid import Answer, HybridSearch, Query
from tailrace.serve.doors import Door, Pipeline
from tailrace.serve.exchange import Exchange
from tailrace.stores.port import ALL, Filter

SEARCH = "search"
HOPED_S = 0.02
"""What a search is hoped to take before the first."""


class SearchDesk:
    """Searches through one lane; `model` is what the embedding lane is called."""

    def __init__(
        self,
        settings: SearchSettings,
        search: HybridSearch,
        clock: Clock,
        events: Events,
        *,
        model: str,
    ) -> None:
        self.search = search
        self._clock = clock
        self._model = model
        seats = settings.door.seats(1000)
        self.lane = Lane(
            SEARCH,
            self._run,
            clock=clock,
            slots=settings.in_flight_max,
            service=ServiceTime(HOPED_S),
            events=events,
            waiting_max=seats + settings.in_flight_max,
            abandons=True,
        )
        self.door = Door(SEARCH, self.lane, settings.door.admission(), seats=seats)
        self._pipeline = Pipeline(MemoryCache(0), clock)

    async def _run(self, payloads: Sequence[Query], run: Run) -> Sequence[Answer]:
        found = [await self.search.search(query) for query in payloads]
        run.mark(SEARCH)
        return found

    async def find(self, exchange: Exchange, query: Query) -> Answer:
        """One search through the door; the exchange's chain tells where the time went.

        Raises:
            Rejected, QueueTimeout: with when to come back.
            TailraceError: what went wrong with the search.

        """
        exchange.account.through(SEARCH, SEARCH, "retrieval", self._model)
        work = Work(
            query,
            exchange.stamps,
            door=SEARCH,
            caller=exchange.caller,
            deadline=exchange.deadline(),
        )
        with self.door.telling_when():
            found: Answer = await exchange.unless_left(self._pipeline.admit(self.door, work))
        exchange.stamps = unfolded(exchange.stamps, SEARCH, found.trail)
        return found

    async def recommended(self, spec: SearchSpec, count: int) -> Found:
        """The best books for a spec, as a turn shows them; a spec that finds none loses its narrowing.

        Raises:
            Rejected, QueueTimeout, TailraceError: as `find`.

        """
        narrow = Filter(
            category=spec.category,
            author=spec.author,
            year_from=spec.year_from,
            year_to=spec.year_to,
        )
        found = await self._spoken(Query(spec.query, narrow, 1, count))
        degraded = found.degraded
        if not found.found and narrow != ALL:
            found = await self._spoken(Query(spec.query, ALL, 1, count))
            degraded = (*found.degraded, "widened")
        books = [
            {
                **asdict(one.document),
                "rank": one.fused.rank,
                "rank_keyword": one.fused.keyword.rank if one.fused.keyword else None,
                "rank_vector": one.fused.vector.rank if one.fused.vector else None,
            }
            for one in found.found
        ]
        return Found(books, found.mode, degraded)

    async def _spoken(self, query: Query) -> Answer:
        """A search that a turn makes: through the same door as everybody's."""
        work = Work(query, Stamps(self._clock.now()), door=SEARCH)
        with self.door.telling_when():
            found: Answer = await self._pipeline.admit(self.door, work)
        return found
