"""The book service: one store, one embedding lane, one search lane in front of both.

The composition root of the app. Knows every part; decides nothing itself.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tailrace.apps.books.catalogue import shipped_documents
from tailrace.apps.books.cover.desk import COVER, CoverDesk
from tailrace.apps.books.embedding import LaneEmbedder
from tailrace.apps.books.reranking import opened_reranker, stage
from tailrace.apps.books.searching import SEARCH, SearchDesk
from tailrace.apps.books.settings import RERANKER, BooksSettings
from tailrace.apps.books.turn.desk import TurnDesk
from tailrace.cache.memory import MemoryCache
from tailrace.core.clock import Clock, MonotonicClock
from tailrace.core.events import Event, Events, Settled
from tailrace.core.lane import Lane
from tailrace.models.cores import usable_cores
from tailrace.models.port import Progress
from tailrace.models.threads import InferenceThreads
from tailrace.search.analyzers import analyzer_named
from tailrace.search.hybrid import Budget, HybridSearch
from tailrace.search.ingest import ingest
from tailrace.search.passages import passage
from tailrace.search.spaces import check_active
from tailrace.serve.background import BackgroundEmbedder
from tailrace.serve.doors import Door
from tailrace.serve.local_offers import LocalOffers
from tailrace.serve.metrics import Metrics
from tailrace.serve.opening import Opening
from tailrace.serve.remote_offers import Surroundings
from tailrace.serve.tracer import open_tracer
from tailrace.stores.batches import check_canary
from tailrace.stores.errors import SpaceMismatch
from tailrace.stores.open import open_store as open_at
from tailrace.stores.port import Document, Store, Upserted, Vectors

T = TypeVar("T")


class BooksServer:
    """Everything that runs, and what the routes need of it."""

    def __init__(
        self,
        settings: BooksSettings,
        progress: Progress,
        *,
        opening: Opening | None = None,
        store: Store | None = None,
    ) -> None:
        self.settings = settings
        self.clock: Clock = MonotonicClock()
        self.events = Events()
        self.threads = InferenceThreads(settings.threads or usable_cores())
        self.local = LocalOffers(
            Surroundings(
                self.clock,
                self.events,
                MemoryCache(settings.queries_kept),
                bulk_yields=0.0,  # documents have a lane of their own
            ),
            self.threads,
            settings.cache_dir,
            settings.ready,
            opening or Opening(),
        )
        self.served = self.local.embedder(settings.model.offer(), progress)
        self.background = BackgroundEmbedder(
            f"{settings.model.name} in the background",
            self.served.model,
            slots=settings.ingest.runs_max or self.threads.count,
            run_tokens=settings.ingest.run_tokens,
            clock=self.clock,
            events=self.events,
        )
        self.embedder = LaneEmbedder(self.served, self.background, self.clock)
        self.store = store if store is not None else open_store(settings)
        self.store_threads = ThreadPoolExecutor(settings.search.store_threads, "tailrace-store")
        self.writer = ThreadPoolExecutor(1, "tailrace-write")
        self._take_space()
        empty = self.store.stats().documents == 0
        if settings.store.catalogue and empty and self.mismatch() is None:
            self._fill(progress)
        self.reranker = opened_reranker(settings.search, self.local, self.clock, progress)
        names = [settings.model.name, self.background.lane.name, SEARCH, COVER]
        names += [RERANKER] if self.reranker else []
        self.metrics = Metrics("books", names)
        self.tracer = open_tracer(settings.tracing.choice(), "tailrace-books", self.metrics)
        self.degraded = self.metrics.counter(
            "degraded", "Searches answered with less than was asked for", "reason"
        )
        search = HybridSearch(
            self.store,
            self.embedder,
            self.store_threads,
            self.clock,
            vote=settings.search.vote(),
            k=settings.search.rrf_k,
            budget=Budget(settings.search.embed_ms / 1000),
            degraded=lambda reason: self.degraded.labels(reason).inc(),
            reranking=stage(self.reranker, settings.search),
        )
        self.searches = SearchDesk(
            settings.search, search, self.clock, self.events, model=settings.model.name
        )
        self.desk = TurnDesk(
            settings.llm,
            settings.turn,
            self.local.around,
            self.searches.recommended,
            self.categories,
            body_max_bytes=settings.server.body_max_bytes,
        )
        self.covers = CoverDesk(settings.cover, self.local.around, self.store)
        self._listen()

    def _take_space(self) -> None:
        """Be sure that the model still gives the vectors of its space. Raises CanaryMismatch.

        A store that searches another model's space is served all the same, by the keyword leg alone,
        until `tailrace books migrate` switches; see `mismatch`.
        """
        own = self.embedder.space
        if self.store.space() is None:
            self.store.add_space(own, self.embedder.canary)
        for held in self.store.spaces():
            if held.space == own and held.canary is not None:
                check_canary(own, held.canary, self.embedder.canary.vector)

    def mismatch(self) -> SpaceMismatch | None:
        """Why searches lack their vector leg, with what to run; None where the model is the store's."""
        try:
            check_active(self.store, self.embedder.space)
        except SpaceMismatch as error:
            return error
        return None

    def _fill(self, progress: Progress) -> None:
        documents = shipped_documents()
        for done in ingest(self.store, self.embedder.space, self.embedder.documents_now, documents):
            share = done.documents / len(documents)
            progress(f"ingesting {len(documents)} books", share)

    def categories(self) -> list[str]:
        """The first levels of the store's categories, the large ones first."""
        counts: Counter[str] = Counter()
        for name, count in self.store.categories().items():
            counts[name.split("/", 1)[0]] += count
        return sorted(counts, key=lambda name: (-counts[name], name))

    # -- documents ------------------------------------------------------------------------------

    async def put(self, documents: Sequence[Document]) -> Upserted:
        """Write documents with their vectors, all or none; those that are there as they are cost nothing.

        Raises:
            SpaceMismatch: the store searches the vectors of another model.
            TailraceError: the embedding lane or the store refused; nothing is written.

        """
        new = await self._write(self._unfinished, documents)
        known = len(documents) - len(new)
        if not new:
            return Upserted(0, 0, known)
        rows = await self.embedder.documents([passage(document) for document in new])
        vectors = Vectors(self.embedder.space, rows)
        made: Upserted = await self._write(self.store.upsert, new, vectors)
        return Upserted(made.inserted, made.updated, made.unchanged + known)

    def _unfinished(self, documents: Sequence[Document]) -> list[Document]:
        check_active(self.store, self.embedder.space)
        return self.store.unfinished(documents, self.embedder.space)

    async def _write(self, ask: Callable[..., T], *given: Any) -> T:
        """A call to the store on the thread of those who write: searches do not stand behind it."""
        return await asyncio.get_running_loop().run_in_executor(self.writer, ask, *given)

    async def ask_store(self, ask: Callable[..., T], *given: Any) -> T:
        """A call to the store on one of its threads."""
        return await asyncio.get_running_loop().run_in_executor(self.store_threads, ask, *given)

    # -- state ----------------------------------------------------------------------------------

    @property
    def lanes(self) -> list[Lane]:
        """The search lane, then the models' (for queries, for documents) and the reader's."""
        own = (self.searches.lane, *self.local.lanes, self.background.lane)
        return [*own, *self.desk.lanes, *self.covers.lanes]

    def _listen(self) -> None:
        self.events.subscribe(self.metrics)
        self.desk.count(self.metrics)
        self.covers.count(self.metrics)
        self.events.subscribe(self._notice)
        self.metrics.gauge(
            "waiting",
            "Work that waits, by lane",
            ("lane",),
            lambda: {(lane.name,): float(lane.waiting) for lane in self.lanes},
        )
        self.metrics.gauge(
            "documents",
            "Documents in the store",
            (),
            lambda: {(): float(self.store.stats().documents)},
        )

    def _notice(self, event: Event) -> None:
        if isinstance(event, Settled) and (door := self.doors.get(event.door)):
            door.admission.observe(event)

    @property
    def doors(self) -> dict[str, Door]:
        """Every door by its name: the searches', the models', the covers'."""
        chat = [self.desk.chat.served.door] if self.desk.chat else []
        rerank = [self.reranker.served.served.door] if self.reranker else []
        own = (self.searches.door, self.served.served.door, *rerank, *chat, *self.covers.doors)
        return {door.name: door for door in own}

    def about(self) -> dict[str, Any]:
        """What a page has to know beside the numbers of the store."""
        return {"turn": self.desk.about(), "cover": self.covers.about()}

    def ready(self) -> tuple[bool, str]:
        """Whether searches are taken in. A model that is down degrades them; it does not end them."""
        if any(lane.draining for lane in self.lanes):
            return False, "The server is shutting down."
        return True, ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the language model alive; on leaving, finish what was taken in."""
        try:
            async with self.desk.running(), self.covers.running():
                yield
                for lane in self.lanes:
                    await lane.drain(self.settings.server.drain_grace_s)
        finally:
            self.local.close()
            self.background.close()
            self.store_threads.shutdown()
            self.writer.shutdown()
            self.store.close()
            if self.tracer is not None:
                await self.tracer.close()

    def close(self) -> None:
        """Let go of everything, where nothing was ever running."""
        self.covers.close()
        self.store_threads.shutdown()
        self.writer.shutdown()
        self.store.close()
        self.background.close()
        self.threads.close()


def open_store(settings: BooksSettings) -> Store:
    """The store of the settings, made where there is none. Raises StoreError."""
    return open_at(settings.store.address(), analyzer_named(settings.store.analyzer))
