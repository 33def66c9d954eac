"""Going over to another embedding model: what `tailrace books migrate` does, without its terminal.

The service beside it goes on; both meet in the store only.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.apps.books.settings import BooksSettings
from tailrace.core.clock import MonotonicClock
from tailrace.models.cores import usable_cores
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import ModelUnavailable, UnknownSource
from tailrace.models.port import Progress
from tailrace.models.threads import InferenceThreads
from tailrace.search.gate import Gate, judge, scored
from tailrace.search.hybrid import Budget, HybridSearch
from tailrace.search.migrate import Filled, fill, take_over
from tailrace.search.quality import Labelled
from tailrace.serve.opening import Opening
from tailrace.stores.batches import check_canary
from tailrace.stores.port import Store

PATIENCE_S = 60.0
"""The longest a query of the gate waits for its vector."""


class Migration:
    """One store on its way to another model. Leave it by `close`; the store stays the caller's."""

    def __init__(self, settings: BooksSettings, store: Store, progress: Progress) -> None:
        self._settings = settings
        self._store = store
        self._progress = progress
        self._threads = InferenceThreads(settings.threads or usable_cores())
        self._models: list[OnnxEmbedder] = []

    def open(self, source: str) -> ModelEmbedder:
        """A model, opened as the service would. Raises ModelUnavailable, UnknownSource."""
        offer = self._settings.model.model_copy(update={"source": source}).offer()
        made = Opening().open(offer, self._threads, self._progress, self._settings.cache_dir)
        assert isinstance(made.model, OnnxEmbedder)
        self._models.append(made.model)
        return ModelEmbedder(made.model)

    def target(self, to: str) -> ModelEmbedder:
        """The model that `--to` means: a source, a folder, or the configured model by its name."""
        if ":" in to:
            return self.open(to)
        if Path(to).expanduser().is_dir():
            return self.open(f"dir:{to}")
        source = self._settings.model.source
        made = self.open(source)
        if made.space.model != to:
            raise UnknownSource(
                f"{to!r} is no model source (dir:PATH, hf:ORG/NAME[@REV][:FILE], package:NAME), "
                f"and the configured model, {source}, is {made.space.model}"
            )
        return made

    def fill(self, new: ModelEmbedder) -> Iterator[Filled]:
        """Fill the model's space beside the active one. Raises CanaryMismatch, StoreError."""
        held = self._store.add_space(new.space, new.canary)
        if held.canary is not None:
            check_canary(held.space, held.canary, new.canary.vector)
        yield from fill(self._store, new.space, new.documents_now)

    def build_index(self, new: ModelEmbedder) -> bool:
        """Give a filled space the index that its searches will use; see the store's port."""
        return self._store.build_index(new.space)

    def judge(self, new: ModelEmbedder, queries: Sequence[Labelled], present: str) -> Gate:
        """The recall gate: `new` against the model of the source `present`, if that is the active one's."""
        old = self._present(present)
        before = None if old is None else self._table(old, queries, "the model in use")
        return judge(self._table(new, queries, "the new model"), before)

    def take_over(self, new: ModelEmbedder) -> Iterator[Filled]:
        """Switch to the new model's space."""
        return take_over(self._store, new.space, new.documents_now)

    def close(self) -> None:
        """Let go of the models and threads."""
        for model in self._models:
            model.close()
        self._threads.close()

    def _present(self, source: str) -> ModelEmbedder | None:
        active = self._store.space()
        with contextlib.suppress(ModelUnavailable):
            made = self.open(source)
            if active is not None and made.space == active.space:
                return made
        return None

    def _table(
        self, embedder: ModelEmbedder, queries: Sequence[Labelled], who: str
    ) -> list[list[float]]:
        async def ask() -> list[list[float]]:
            rows = []
            for number, query in enumerate(queries, 1):
                rows.append(await scored(search, query))
                self._progress(f"judging {who}", number / len(queries))
            return rows

        settings = self._settings.search
        with ThreadPoolExecutor(settings.store_threads, "tailrace-store") as threads:
            search = HybridSearch(
                self._store,
                embedder,
                threads,
                MonotonicClock(),
                vote=settings.vote(),
                k=settings.rrf_k,
                budget=Budget(PATIENCE_S),
                beside=True,
            )
            return asyncio.run(ask())
