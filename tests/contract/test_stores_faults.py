"""What happens to a store when something breaks under it."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest

from databases import Postgres
from tailrace.search.text import Bigrams
from tailrace.stores import snapshot
from tailrace.stores.batches import check_canary
from tailrace.stores.errors import (
    CanaryMismatch,
    StoreForeign,
    StoreTooNew,
    StoreUnavailable,
)
from tailrace.stores.port import Canary, Document, Filter, Space, Vectors
from tailrace.stores.postgres import PostgresStore
from tailrace.stores.postgres_vectors import EXACT_ROWS
from tailrace.stores.sqlite import SqliteStore

SPACE = Space("tiny", "f00d", "float32", "", "", "mean", True, 16, "words-1")


def unit_rows(count: int, seed: int = 3) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def books(count: int, start: int = 0) -> list[Document]:
    return [Document(f"d{n:05}", f"책 {n}") for n in range(start, start + count)]


WRITER = """
import sys
from test_stores_faults import SPACE, Bigrams, SqliteStore, Path, Vectors, books, unit_rows
store = SqliteStore(Path(sys.argv[1]), Bigrams())
store.add_space(SPACE)
for start in range(0, 10**6, 50):
    store.upsert(books(50, start), Vectors(SPACE, unit_rows(50)))
    print(start, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_batches_only(tmp_path: Path) -> None:
    path = tmp_path / "books.sqlite"
    here = Path(__file__).parent
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(here), str(here.parent), *sys.path]),
    }
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(4):
            assert child.stdout.readline()
        time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        store = SqliteStore(path, Bigrams())
        count = store.stats().documents
        assert count >= 200
        assert count % 50 == 0
        assert store.missing(SPACE, 1) == []
        found = store.vector(Vectors(SPACE, unit_rows(1)), count + 1)[0].hits
        assert len(found) == count
        assert len(store.keyword(store.analyzer.query_terms("책"), count + 1).hits) == count
        store.close()


def test_a_file_of_a_newer_version_or_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "books.sqlite"
    SqliteStore(path, Bigrams()).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreTooNew, match="schema 99"):
        SqliteStore(path, Bigrams())
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreForeign):
        SqliteStore(other, Bigrams())
    text = tmp_path / "notes.txt"
    text.write_text("no database " * 100)
    with pytest.raises(StoreForeign):
        SqliteStore(text, Bigrams())
    assert text.read_text().startswith("no database")


def test_the_mapped_matrix_is_never_trusted_over_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.stores.sqlite_feed.SNAPSHOT_FROM", 100)
    path = tmp_path / "books.sqlite"
    rows = unit_rows(400)

    def found(store: SqliteStore) -> list[str]:
        return [hit.id for hit in store.vector(Vectors(SPACE, rows[:1]), 400)[0].hits]

    store = SqliteStore(path, Bigrams())
    store.add_space(SPACE)
    store.upsert(books(300), Vectors(SPACE, rows[:300]))
    before = found(store)
    files = list(tmp_path.glob("*.matrix"))
    assert len(files) == 1
    store.upsert(books(100, 300), Vectors(SPACE, rows[300:]))
    store.delete(["d00000", "d00001"])
    expected = found(store)
    store.close()
    assert set(expected) == {f"d{n:05}" for n in range(2, 400)}
    assert before != expected

    store = SqliteStore(path, Bigrams())
    assert found(store) == expected, "the file is caught up with what came after it"
    store.close()
    files[0].write_bytes(files[0].read_bytes()[:1000])
    store = SqliteStore(path, Bigrams())
    assert found(store) == expected, "a broken file is made again"
    store.close()
    assert len(list(tmp_path.glob("*.matrix"))) == 1
    assert snapshot.SNAPSHOT_FROM > 1000


def test_the_canary_meets_a_model_that_was_swapped() -> None:
    then, now = unit_rows(2)
    canary = Canary("카나리아", then)
    assert check_canary(SPACE, canary, then) == pytest.approx(1)
    with pytest.raises(CanaryMismatch, match="tailrace books ingest"):
        check_canary(SPACE, canary, now)
    with pytest.raises(CanaryMismatch):
        check_canary(SPACE, canary, now[:8])


@pytest.fixture
def server(postgres_plain: Postgres) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_plain.url, Bigrams(), schema="faults")
    yield store
    store.close()
    with psycopg.connect(postgres_plain.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA faults CASCADE")


def test_a_database_that_goes_is_said_and_one_that_comes_back_is_used(
    server: PostgresStore, postgres_plain: Postgres
) -> None:
    server.add_space(SPACE)
    server.upsert(books(3), Vectors(SPACE, unit_rows(3)))
    query = Vectors(SPACE, unit_rows(1))
    assert len(server.vector(query, 10)[0].hits) == 3
    postgres_plain.halt()
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            server.keyword(Bigrams().query_terms("책"), 10)
        with pytest.raises(StoreUnavailable):
            server.vector(query, 10)
    postgres_plain.start()
    assert len(server.keyword(Bigrams().query_terms("책"), 10).hits) == 3
    assert len(server.vector(query, 10)[0].hits) == 3
    with pytest.raises(StoreUnavailable):
        PostgresStore("postgresql://nobody@127.0.0.1:1/none", Bigrams())


def test_a_schema_of_a_newer_version_is_left_alone(
    server: PostgresStore, postgres_plain: Postgres
) -> None:
    with psycopg.connect(postgres_plain.url, autocommit=True) as connection:
        connection.execute("UPDATE faults.meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(StoreTooNew, match="version 99"):
        PostgresStore(postgres_plain.url, Bigrams(), schema="faults")


def test_an_index_keeps_the_promises_of_the_exact_scan(
    postgres_vector: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert EXACT_ROWS > 1000
    monkeypatch.setattr("tailrace.stores.postgres_vectors.EXACT_ROWS", 200)
    store = PostgresStore(postgres_vector.url, Bigrams(), schema="indexed")
    store.add_space(SPACE)
    rows = unit_rows(3000)
    documents = [
        replace(document, category=["드문", "절반", "흔한", "절반"][n % 4] if n % 40 else "희귀")
        for n, document in enumerate(books(3000))
    ]
    store.upsert(documents, Vectors(SPACE, rows))
    exact = store.vector(Vectors(SPACE, rows[:20]), 10)
    assert all(leg.exact for leg in exact)
    assert store.build_index(SPACE)
    assert not store.build_index(SPACE), "it is there already"
    assert store.stats().detail["hnsw"] == "yes"
    found = store.vector(Vectors(SPACE, rows[:20]), 10)
    assert not any(leg.exact for leg in found)
    alike = [
        len({h.id for h in a.hits} & {h.id for h in b.hits})
        for a, b in zip(exact, found, strict=True)
    ]
    assert sum(alike) >= 0.95 * 200
    rare = store.vector(Vectors(SPACE, rows[:1]), 10, Filter(category="희귀"))[0]
    assert rare.exact
    assert len(rare.hits) == 10
    half = store.vector(Vectors(SPACE, rows[:1]), 10, Filter(category="절반"))[0]
    assert not half.exact
    assert not half.short
    assert len(half.hits) == 10
    store.close()
