"""In which order a hybrid search asks for its parts."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tailrace.core.clock import MonotonicClock
from tailrace.search import hybrid
from tailrace.search.hybrid import Answer, HybridSearch, Query
from tailrace.search.text import Bigrams
from tailrace.stores.port import ALL, Document, Filter, KeywordLeg, Space, Vectors
from tailrace.stores.sqlite import SqliteStore

SPACE = Space("tiny", "f00d", "float32", "", "", "mean", True, 4, "words")


class Listening(SqliteStore):
    """A store that says when it was asked for words."""

    said: list[str]

    def keyword(self, terms: Sequence[str], limit: int, where: Filter = ALL) -> KeywordLeg:
        self.said.append("words")
        return super().keyword(terms, limit, where)


class Embedder:
    """Takes `turns` turns of the event loop to begin, as a lane does."""

    space = SPACE

    def __init__(self, said: list[str], turns: int) -> None:
        self._said = said
        self._turns = turns

    async def query(self, text: str, deadline: float) -> tuple[Vectors, Mapping[str, float]]:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._said.append("model")
        await asyncio.sleep(0.02)
        return Vectors(SPACE, np.eye(1, 4, dtype=np.float32)), {"embed": 0.02}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Listening]:
    store = Listening(tmp_path / "books.db", Bigrams())
    store.said = []
    store.add_space(SPACE)
    store.upsert([Document("a", "어린 왕자")], Vectors(SPACE, np.eye(1, 4, dtype=np.float32)))
    yield store
    store.close()


def found(store: Listening, threads: int, query: Query) -> Answer:
    with ThreadPoolExecutor(threads) as pool:
        search = HybridSearch(store, Embedder(store.said, 5), pool, MonotonicClock())
        return asyncio.run(search.search(query))


def test_the_model_begins_before_the_words_take_the_interpreter(
    store: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "HEAD_START_S", 0.3)  # so that a busy machine changes nothing
    answer = found(store, 2, Query("왕자"))
    assert store.said == ["model", "words"]
    assert (answer.mode, [one.document.id for one in answer.found]) == ("hybrid", ["a"])


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_one_thread_is_enough(store: Listening, mode: str) -> None:
    answer = found(store, 1, Query("왕자", mode=mode))  # type: ignore[arg-type]
    assert [one.document.id for one in answer.found] == ["a"]
    assert "fuse" in answer.trail.parts()
