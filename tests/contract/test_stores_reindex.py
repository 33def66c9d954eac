"""The keyword index made again by another analyser: every store alike, whole or not at all."""

import numpy as np
import pytest

from tailrace.search.morphemes import Morphemes
from tailrace.search.text import Bigrams
from tailrace.stores.errors import AnalyzerMismatch
from tailrace.stores.port import Document, Space, Vectors

SPACE = Space("tiny", "f00d", "float32", "", "", "mean", True, 4, "words-1")
DOCUMENTS = [
    Document("a", "나미야 잡화점의 기적", author="히가시노 게이고"),
    Document("b", "어린 왕자", author="생텍쥐페리"),
    Document("c", "부르는 소리"),
]
CALLED = "불렀다"
"""Shares no pair of characters with the document that holds its stem, only a morpheme."""


class Words(Bigrams):
    """Another analyser that needs nothing."""

    fingerprint = "words-of-a-test"

    def document_terms(self, text):
        return text.split()

    def query_terms(self, text):
        return list(dict.fromkeys(text.split()))


@pytest.fixture
def filled(opened):
    store = opened()
    store.add_space(SPACE)
    store.upsert(DOCUMENTS, Vectors(SPACE, np.eye(3, 4, dtype=np.float32)))
    return store


def words(store, text):
    return [hit.id for hit in store.keyword(store.analyzer.query_terms(text), 10).hits]


def near(store):
    return store.vector(Vectors(SPACE, np.eye(1, 4, dtype=np.float32)), 10)[0].hits[0].id


def test_another_analyser_is_refused_until_the_index_is_made_again(filled, opened):
    told = []
    with pytest.raises(AnalyzerMismatch, match="tailrace books reindex"):
        opened(Words())
    assert words(filled, "잡화") == ["a"]
    again = opened(Words(), lambda *heard: told.append(heard))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert words(again, "잡화점의") == ["a"]
    assert words(again, "잡화") == []
    assert near(again) == "a"
    with pytest.raises(AnalyzerMismatch, match=r"words-of-a-test"):
        opened()


def test_morphemes_stand_beside_the_bigrams_and_go_again(filled, opened):
    assert words(filled, CALLED) == []
    with_stems = opened(Morphemes(), lambda *_: None)
    assert words(with_stems, "잡화") == ["a"]
    assert words(with_stems, CALLED) == ["c"]
    before = words(opened(Morphemes()), "게이고의 기적")
    assert words(opened(Bigrams(), lambda *_: None), "게이고의 기적") == before == ["a"]


def test_made_twice_it_is_as_made_once(filled, opened):
    first = [(hit.id, hit.score) for hit in filled.keyword(["왕자", "잡화"], 10).hits]
    again = opened(None, lambda *_: None)
    assert [(hit.id, hit.score) for hit in again.keyword(["왕자", "잡화"], 10).hits] == first


def test_a_reindex_that_breaks_off_leaves_the_index_as_it_was(filled, opened):
    def broken(done, _):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened(Words(), broken)
    assert words(filled, "잡화") == ["a"]
    assert words(opened(), "왕자") == ["b"]


def test_a_process_that_was_there_before_writes_no_terms_of_the_old_analyser(filled, opened):
    opened(Words(), lambda *_: None)
    with pytest.raises(AnalyzerMismatch, match="start it again"):
        filled.upsert([Document("d", "데미안")], Vectors(SPACE, np.eye(1, 4, dtype=np.float32)))
    assert filled.get(["d"]) == []
