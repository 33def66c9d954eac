"""HNSW against the exact scan in PostgreSQL, with filters and without: `make bench-pgvector`.

Synthetic clustered vectors, copied in beside bare documents; searches go through the store. The exact scan
and the index are asked the same queries; recall is against the exact scan. The server is the one that the
contract tests start. A build that takes longer than BUILD_S is broken off, and said so.
"""

import argparse
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psycopg
from figures import Figure, keep, quantile, show
from machine import fingerprint
from stores import SPACE, TOP, clustered, recall, spread

from tailrace.search.text import Bigrams
from tailrace.stores import postgres_vectors
from tailrace.stores.errors import StoreUnavailable
from tailrace.stores.port import Filter, FloatArray, Vectors
from tailrace.stores.postgres import PostgresStore

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from databases import Postgres, wheel_bin

BUILD_S = 600
"""The longest that an index may take."""
MEMORY = "1GB"
"""For the build: the graph of 200,000 rows must fit, or it takes several times as long."""
QUERIES = 20
WHERES = {
    "no filter": Filter(),
    "a filter that keeps half": Filter(category="half"),
    "a filter that keeps 1 %": Filter(category="rare"),
}
_DOCUMENTS = """
INSERT INTO documents (id, digest, body, category, author, lexemes, frequencies, fields, length)
SELECT 'd' || lpad(n::text, 7, '0'), '', '{}',
    CASE WHEN n %% 100 = 7 THEN 'rare' WHEN n %% 2 = 1 THEN 'half' ELSE 'other' END,
    '', '', '{}', '', 0 FROM generate_series(1, %s) AS n
"""
_BUILT = "SELECT tuples_done FROM pg_stat_progress_create_index"


@dataclass
class Seen:
    """What the queries of one filter gave."""

    ms: list[float] = field(default_factory=list)
    found: list[set[str]] = field(default_factory=list)
    exact: bool = True
    short: int = 0


def fill(url: str, schema: str, rows: FloatArray) -> None:
    """Documents and vectors, by the server's own fast way in."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}, public")
        connection.execute(_DOCUMENTS, (len(rows),))
        numbers = connection.execute("SELECT row FROM documents ORDER BY id").fetchall()
        head = struct.pack(">hiqiqihh", 3, 8, 0, 8, 1, 4 + 4 * rows.shape[1], rows.shape[1], 0)
        copy = "COPY vectors_1 (row, generation, vector) FROM STDIN WITH (FORMAT binary)"
        with connection.cursor() as cursor, cursor.copy(copy) as into:
            into.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
            for (number,), row in zip(numbers, rows.astype(">f4"), strict=True):
                into.write(head[:6] + struct.pack(">q", number) + head[14:] + row.tobytes())
            into.write(struct.pack(">h", -1))
        connection.execute("ANALYZE")


def ask(store: PostgresStore, queries: FloatArray) -> dict[str, Seen]:
    """All queries under all filters, by turns."""
    seen = {name: Seen() for name in WHERES}
    for query in queries:
        for name, where in WHERES.items():
            start = time.perf_counter()
            leg = store.vector(Vectors(SPACE, query[None, :]), TOP, where)[0]
            one = seen[name]
            one.ms.append((time.perf_counter() - start) * 1e3)
            one.found.append({hit.id for hit in leg.hits})
            one.exact &= leg.exact
            one.short += leg.short
    return seen


def build(store: PostgresStore, url: str, count: int) -> float | None:
    """Seconds that the index takes; None where it was broken off."""
    done = threading.Event()

    def tell() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not done.wait(5.0):
                for (rows,) in connection.execute(_BUILT).fetchall():
                    print(f"  building the index, {rows / count:.0%}", flush=True)

    telling = threading.Thread(target=tell)
    telling.start()
    start = time.perf_counter()
    try:
        store.build_index(SPACE)
    except StoreUnavailable as error:
        print(f"  {error}", flush=True)
        return None
    finally:
        done.set()
        telling.join()
    return time.perf_counter() - start


def server(count: int, url: str, queries: FloatArray) -> list[Figure]:
    """One size."""
    schema = f"bench_{count}"
    store = PostgresStore(url, Bigrams(), schema=schema)
    store.add_space(SPACE)
    print(f"{count} rows: copying them in ...", flush=True)
    fill(url, schema, clustered(count, 1))
    print(f"{count} rows: the exact scan ...", flush=True)
    before = ask(store, queries)
    usual = postgres_vectors.EXACT_ROWS
    postgres_vectors.EXACT_ROWS = min(usual, count // 4)  # else the small one is always exact
    built = build(store, url, count)
    if built is None:
        store.close()
        why = f"broken off after {BUILD_S} s; exact p50 {quantile(before['no filter'].ms, 0.5):.0f} ms"
        return [Figure(f"{count} rows, index", "built", why, False, {})]
    print(f"{count} rows: the index ...", flush=True)
    after = ask(store, queries)
    postgres_vectors.EXACT_ROWS = usual
    store.close()
    figures = []
    for name in WHERES:
        one, other = after[name], before[name]
        share = recall(one.found, other.found)
        faster = quantile(other.ms, 0.5) / quantile(one.ms, 0.5)
        how = "answered exactly" if one.exact else "HNSW"
        text = (
            f"{how}: {spread(one.ms)}, recall@10 {share:.3f}, short {one.short}; exact scan: "
            f"{spread(other.ms)}; {faster:.1f} times as fast"
        )
        numbers = {"ms": one.ms, "exact_ms": other.ms, "recall": share, "short": one.short}
        reached = share >= 0.95
        figures.append(Figure(f"{count} rows, {name}", "recall >= 0.95", text, reached, numbers))
    took = f"{built:.0f} s"
    figures.append(Figure(f"{count} rows, index built", "-", took, True, {"s": built}))
    return figures


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20_000, 200_000])
    parser.add_argument("--dry", action="store_true", help="show, keep nothing")
    arguments = parser.parse_args()
    programs = wheel_bin()
    if programs is None:
        raise SystemExit("no PostgreSQL with pgvector; make setup installs one")
    machine = fingerprint()
    postgres, seen = Postgres(programs), list[Figure]()
    try:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE CURRENT_USER SET maintenance_work_mem = '{MEMORY}'")
            connection.execute(f"ALTER ROLE CURRENT_USER SET statement_timeout = '{BUILD_S}s'")
        for count in arguments.sizes:
            seen += server(count, postgres.url, np.asarray(clustered(QUERIES, 2)))
    finally:
        postgres.stop()
    if arguments.dry:
        show(seen)
        return
    command = f"make bench-pgvector (sizes {arguments.sizes})"
    keep("pgvector", "pgvector: HNSW against the exact scan", seen, machine, command)


if __name__ == "__main__":
    main()
