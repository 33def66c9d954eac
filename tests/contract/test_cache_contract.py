"""What every answer cache promises, looped over the adapters."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tailrace.cache.memory import MemoryCache
from tailrace.cache.port import Cache
from tailrace.cache.sqlite import BUSY_S, SqliteCache


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[int], Cache]]:
    made: list[Cache] = []

    def open_one(entries_max: int) -> Cache:
        sqlite = request.param == "sqlite"
        file = tmp_path / f"{len(made)}.sqlite3"
        made.append(SqliteCache(file, entries_max) if sqlite else MemoryCache(entries_max))
        return made[-1]

    yield open_one
    for cache in made:
        cache.close()


def test_an_answer_is_found_under_its_own_key_only(make: Callable[[int], Cache]) -> None:
    cache = make(10)
    cache.put(("model-a", "text"), 1)
    assert cache.get(("model-a", "text")) == 1
    assert cache.get(("model-b", "text")) is None
    assert cache.get(("model-a", "Text")) is None


def test_hits_and_misses_are_counted_and_survive_clearing(make: Callable[[int], Cache]) -> None:
    cache = make(10)
    cache.put("a", 1)
    cache.get("a")
    cache.get("b")
    cache.clear()
    assert cache.get("a") is None
    stats = cache.stats()
    assert (stats.entries, stats.entries_max, stats.hits, stats.misses) == (0, 10, 1, 2)


def test_the_one_unused_for_longest_makes_room(make: Callable[[int], Cache]) -> None:
    cache = make(3)
    for key in "abc":
        cache.put(key, key)
    cache.get("a")
    cache.put("d", "d")
    assert cache.get("b") is None
    assert [cache.get(key) for key in "acd"] == ["a", "c", "d"]


def test_putting_again_refreshes_and_replaces(make: Callable[[int], Cache]) -> None:
    cache = make(2)
    cache.put("a", 1)
    cache.put("b", 1)
    cache.put("a", 2)
    cache.put("c", 1)
    assert cache.get("a") == 2
    assert cache.get("b") is None


def test_a_cache_of_no_entries_keeps_nothing_and_does_not_mind(
    make: Callable[[int], Cache],
) -> None:
    cache = make(0)
    cache.put("a", 1)
    assert cache.get("a") is None
    assert cache.stats().entries == 0


def test_it_never_grows_beyond_its_bound(make: Callable[[int], Cache]) -> None:
    cache = make(50)
    for i in range(1000):
        cache.put(i, i)
        assert cache.stats().entries <= 50
    assert all(cache.get(i) == i for i in range(950, 1000))


def rows(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])


def test_a_restart_remembers_arrays_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "below" / "answers.sqlite3"
    vector = np.random.default_rng(1).normal(size=384).astype(np.float32)
    first = SqliteCache(file, 10)
    first.put(("model-a", ("pooled", (1, 2))), vector)
    first.put(("model-a", ("pooled", (3,))), np.float32(0.5).reshape(()))
    first.close()
    second = SqliteCache(file, 10)
    known = second.get(("model-a", ("pooled", (1, 2))))
    assert known is not None
    assert known.dtype == np.float32
    np.testing.assert_array_equal(known, vector)
    assert second.get(("model-a", ("pooled", (3,)))) == np.float32(0.5)
    assert second.get(("model-b", ("pooled", (1, 2)))) is None
    second.close()


def test_the_file_is_bounded_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite3"
    first = SqliteCache(file, 20)
    for i in range(20):
        first.put(i, i)
    first.get(0)
    for i in range(20, 30):
        first.put(i, i)
    first.close()
    assert rows(file) == 20
    second = SqliteCache(file, 5)
    assert second.stats().entries == 5
    assert second.get(29) == 29
    second.close()
    assert rows(file) == 5


def test_what_is_cleared_stays_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite3"
    first = SqliteCache(file, 20)
    first.put("a", 1)
    first.clear()
    first.close()
    second = SqliteCache(file, 20)
    assert second.get("a") is None
    second.close()


def test_a_file_that_is_no_cache_is_put_aside(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite3"
    file.write_bytes(b"something else entirely" * 100)
    cache = SqliteCache(file, 20)
    cache.put("a", 1)
    assert cache.get("a") == 1
    cache.close()
    assert (tmp_path / "answers.sqlite3.unreadable").is_file()
    assert rows(file) == 1


def test_a_writer_that_is_held_up_holds_up_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite3"
    cache = SqliteCache(file, 100)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for i in range(100):
            cache.put(i, i)
            assert cache.get(i) == i
        waited = time.monotonic() - began
        other.execute("ROLLBACK")
    assert waited < BUSY_S
    cache.close()
    assert rows(file) == 100
