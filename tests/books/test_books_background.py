"""Documents are embedded and written behind the searches, and neither waits for the other."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookshops import Shop, serving_books
from tailrace.models.threads import InferenceThreads
from tailrace.serve import background

ROWS = [{"id": f"n{n}", "title": f"바다 {n}"} for n in range(12)]


@contextlib.contextmanager
def held(shop: Shop, threads: InferenceThreads) -> Iterator[None]:
    """All of these threads are busy until the block ends."""
    release, busy = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        busy.release()
        release.wait(60)

    for _ in range(threads.count):
        shop.loop.call_soon_threadsafe(threads._submit, hold)
    for _ in range(threads.count):
        assert busy.acquire(timeout=20)
    try:
        yield
    finally:
        release.set()


def test_documents_do_not_stand_in_the_line_of_the_queries(shop: Shop) -> None:
    with shop.model_held():
        answer = shop.ask("POST", "/api/books/documents", json={"documents": ROWS})
    assert answer.json()["inserted"] == len(ROWS)


def test_a_query_does_not_wait_for_documents_that_are_under_way(shop: Shop) -> None:
    with ThreadPoolExecutor(1) as pool, held(shop, shop.server.background.threads):
        put = pool.submit(shop.ask, "POST", "/api/books/documents", json={"documents": ROWS})
        found = shop.search("바다")
        assert (found["mode"], found["degraded"]) == ("hybrid", [])
        assert not put.done()
    assert put.result().status_code == 200
    assert shop.search("바다 11")["hits"][0]["id"] == "n11"


def test_documents_that_find_no_seat_are_told_when_to_come_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "RUNS_WAITING_MAX", 1)
    rows = [{"id": f"l{n}", "title": "바다 이야기 " * (20 + 9 * n)} for n in range(9)]
    answer = shop.ask("POST", "/api/books/documents", json={"documents": rows})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert shop.ask("GET", "/api/books/l1").status_code == 404


def test_searches_do_not_stand_behind_those_who_write(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    file = tmp_path / "books.db"
    few = {"search__store_threads": 1, "store__catalogue": False, "threads": 1}
    with serving_books(file, model__source=f"dir:{tiny_embedder_folder}", **few) as shop:
        shop.ask("POST", "/api/books/documents", json={"documents": ROWS[:6]})
        other = sqlite3.connect(file, isolation_level=None)
        with ThreadPoolExecutor(1) as pool, contextlib.closing(other):
            other.execute("BEGIN IMMEDIATE")
            put = pool.submit(
                shop.ask, "POST", "/api/books/documents", json={"documents": ROWS[6:]}
            )
            for _ in range(20):
                assert shop.search("바다")["mode"] == "hybrid"
            assert not put.done()
            other.execute("ROLLBACK")
        assert put.result().json()["inserted"] == 6
