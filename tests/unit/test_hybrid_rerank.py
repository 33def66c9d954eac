"""The rerank stage of a hybrid search: what it moves, and what stays where it does not come in time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tailrace.core.clock import MonotonicClock
from tailrace.core.errors import LaneFull
from tailrace.search.hybrid import Budget, HybridSearch, Query
from tailrace.search.rerank import Reranking
from tailrace.search.text import Bigrams
from tailrace.stores.port import Document, Space, Vectors
from tailrace.stores.sqlite import SqliteStore

SPACE = Space("tiny", "f00d", "float32", "", "", "mean", True, 16, "words")
TITLES = {id_: f"바다 {id_}" for id_ in "abcdefghij"}


class Embedder:
    """Always the same vector."""

    space = SPACE

    async def query(self, text, deadline):
        del text, deadline
        return Vectors(SPACE, np.eye(1, 16, dtype=np.float32)), {"embed": 0.0}


class Reader:
    """Scores passages by the letter of their title; takes `seconds`, or fails."""

    name = "reader"

    def __init__(self, seconds=0.0, error=None, score=ord):
        self.seconds, self.error, self.score = seconds, error, score
        self.read = []

    async def scores(self, query, passages, deadline_s):
        del query, deadline_s
        self.read.append(list(passages))
        await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error
        return [float(self.score(passage[3])) for passage in passages]


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "books.db", Bigrams())
    store.add_space(SPACE)
    rows = np.eye(16, dtype=np.float32)[:10] + 0.1
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    store.upsert([Document(*pair) for pair in TITLES.items()], Vectors(SPACE, rows))
    yield store
    store.close()


def answered(store, reader, *, window=4, budget_s=0.05, **asked):
    told = []
    with ThreadPoolExecutor(2) as pool:
        stage = Reranking(reader, window, budget_s) if reader else None
        search = HybridSearch(
            store,
            Embedder(),
            pool,
            MonotonicClock(),
            budget=Budget(60.0),
            reranking=stage,
            degraded=told.append,
        )
        found = asyncio.run(search.search(Query("바다", **asked)))
    assert list(found.degraded) == told
    return found


def ids(found):
    return [one.document.id for one in found.found]


def test_the_first_are_put_in_the_order_of_their_scores_and_the_rest_stays(store):
    fused, found = answered(store, None), answered(store, Reader())
    assert ids(found)[:4] == sorted(ids(fused)[:4], reverse=True) != ids(fused)[:4]
    assert ids(found)[4:] == ids(fused)[4:]
    assert [one.fused.rank for one in found.found] == list(range(1, 11))
    assert [ids(fused)[one.fused.reread.before - 1] for one in found.found[:4]] == ids(found)[:4]
    assert all(one.fused.reread is None for one in found.found[4:])
    assert found.degraded == ()
    assert "rerank" in found.trail.parts()


def test_equal_scores_stand_as_they_were_fused(store):
    assert ids(answered(store, Reader(score=lambda _: 1))) == ids(answered(store, None))


@pytest.mark.parametrize(
    "reader", [Reader(seconds=60.0), Reader(error=LaneFull("no seat"))], ids=["late", "refused"]
)
def test_late_or_refused_leaves_the_fused_order_and_says_so(store, reader):
    found = answered(store, reader)
    assert ids(found) == ids(answered(store, None))
    assert (found.mode, found.degraded) == ("hybrid", ("rerank",))
    assert all(one.fused.reread is None for one in found.found)


def test_pages_of_a_reread_list_neither_repeat_nor_leave_gaps(store):
    whole = ids(answered(store, Reader()))
    pages = [ids(answered(store, Reader(), page=page, size=3)) for page in (1, 2, 3, 4)]
    assert [id_ for page in pages for id_ in page] == whole


@pytest.mark.parametrize(
    "asked", [{"page": 3, "size": 2}, {"mode": "keyword"}, {"mode": "vector"}], ids=str
)
def test_nothing_is_read_for_what_the_stage_cannot_move(store, asked):
    reader = Reader()
    found = answered(store, reader, **asked)
    assert (reader.read, found.degraded) == ([], ())


def test_what_is_read_is_the_passage_and_no_more_than_the_window(store):
    reader = Reader()
    answered(store, reader, window=3)
    (read,) = reader.read
    assert len(read) == 3
    assert all(text.startswith("바다 ") for text in read)
