"""What every document store keeps: one suite over the adapters."""

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tailrace.stores.errors import (
    BadDocument,
    BadVectors,
    SpaceInUse,
    SpaceMismatch,
    UnknownDocument,
    UnknownSpace,
)
from tailrace.stores.port import MATCHED_MAX, Canary, Document, Filter, Space, Store, Vectors

DIM = 8
SPACE = Space("tiny-a", "f00d", "float32", "query: ", "passage: ", "mean", True, DIM, "words-1")
OTHER = replace(SPACE, model="tiny-b", file_hash="beef")


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    store = opened()
    store.add_space(SPACE)
    return store


def unit(*values: float) -> np.ndarray:
    row = np.zeros(DIM, np.float32)
    row[: len(values)] = values
    return np.asarray(row / np.linalg.norm(row), np.float32)


def given(*rows: np.ndarray, space: Space = SPACE) -> Vectors:
    return Vectors(space, np.asarray(rows, np.float32))


def book(id_: str, title: str = "어린 왕자", **fields: object) -> Document:
    return replace(Document(id_, title), **fields)  # type: ignore[arg-type]


def words(store: Store, text: str, limit: int = 10, where: Filter = Filter()) -> list[str]:  # noqa: B008
    leg = store.keyword(store.analyzer.query_terms(text), limit, where)
    return [hit.id for hit in leg.hits]


def near(store: Store, *values: float, limit: int = 10, where: Filter = Filter()) -> list[str]:  # noqa: B008
    return [hit.id for hit in store.vector(given(unit(*values)), limit, where)[0].hits]


def test_finds_what_was_written_a_moment_ago_by_both_legs(store: Store) -> None:
    assert words(store, "왕자") == near(store, 1) == []
    store.upsert([book("a"), book("b", "데미안")], given(unit(1), unit(0, 1)))
    assert words(store, "어린왕자") == ["a"]
    assert near(store, 1, 0.1) == ["a", "b"]
    store.upsert([book("a", "인간 실격")], given(unit(0, 0, 1)))
    assert words(store, "어린왕자") == []
    assert words(store, "인간실격") == ["a"]
    assert near(store, 0.1, 1) == ["b", "a"]
    assert store.delete(["a", "nobody"]) == 1
    assert words(store, "인간실격") == []
    assert near(store, 0, 0, 1) == ["b"]


def test_equal_scores_stand_in_the_order_of_their_ids(store: Store) -> None:
    ids = [f"d{n:03}" for n in np.random.default_rng(5).permutation(200)]
    for start in range(0, 200, 17):
        some = ids[start : start + 17]
        store.upsert([book(id_) for id_ in some], given(*[unit(1, 2, 3)] * len(some)))
    for limit in (1, 7, 50, 199, 200, 500):
        assert words(store, "어린 왕자", limit) == sorted(ids)[:limit]
        assert near(store, 1, 1, 1, limit=limit) == sorted(ids)[:limit]


def test_of_one_id_given_twice_the_last_counts(store: Store) -> None:
    store.upsert([book("a", "첫째"), book("a", "둘째")], given(unit(1), unit(0, 1)))
    assert [document.title for document in store.get(["a"])] == ["둘째"]
    assert store.vector(given(unit(0, 1)), 3)[0].hits[0].score == pytest.approx(1)
    assert store.stats().documents == 1


def test_filters_hold_for_both_legs(store: Store) -> None:
    documents = [
        book("a", category="소설/한국", year=1990, author="한 강"),
        book("b", category="소설/한국고전", year=2000, author="박경리"),
        book("c", category="소설", year=2010, author="한강"),
        book("d", category=None, year=None),
    ]
    store.upsert(documents, given(*[unit(1)] * 4))
    expected = {
        Filter(category="소설"): ["a", "b", "c"],
        Filter(category="소설/한국"): ["a"],
        Filter(year_from=2000): ["b", "c"],
        Filter(year_from=1995, year_to=2005): ["b"],
        Filter(author="한강"): ["a", "c"],
        Filter(category="없는 것"): [],
        Filter(): ["a", "b", "c", "d"],
    }
    for where, ids in expected.items():
        assert words(store, "왕자", where=where) == ids
        assert near(store, 1, where=where) == ids


def test_vectors_of_another_space_are_never_compared(store: Store) -> None:
    store.upsert([book("a")], given(unit(1)))
    before = store.stats().vector_comparisons
    with pytest.raises(SpaceMismatch, match="tailrace books migrate --to tiny-b"):
        store.vector(given(unit(1), space=OTHER), 5)
    with pytest.raises(SpaceMismatch):
        store.upsert([book("b")], given(unit(1), space=OTHER))
    assert store.stats().vector_comparisons == before
    assert store.get(["b"]) == []


def test_a_second_space_is_filled_beside_the_first_and_takes_over_at_once(store: Store) -> None:
    store.upsert([book("a"), book("b")], given(unit(1), unit(0, 1)))
    store.add_space(OTHER, Canary("카나리아", unit(3, 4)))
    assert [held.state for held in store.spaces()] == ["active", "backfilling"]
    todo = store.missing(OTHER, 10)
    assert [document.id for document in todo] == ["a", "b"]
    three = [*todo, book("gone")]
    taken = store.put_vectors(three, given(unit(0, 1), unit(1), unit(1), space=OTHER))
    assert taken == 2
    assert store.missing(OTHER, 10) == []
    assert near(store, 1) == ["a", "b"]
    leg = store.vector(given(unit(1), space=OTHER), 5, backfilling=True)[0]
    assert [hit.id for hit in leg.hits] == ["b", "a"]
    with pytest.raises(SpaceMismatch):
        store.vector(given(unit(1), space=OTHER), 5)
    store.switch(OTHER)
    active = store.space()
    assert active is not None
    assert active.space == OTHER
    assert active.canary is not None
    assert active.canary.vector == pytest.approx(unit(3, 4))
    with pytest.raises(SpaceMismatch):
        near(store, 1)
    with pytest.raises(SpaceInUse):
        store.drop(OTHER)
    store.drop(SPACE)
    assert [held.space for held in store.spaces()] == [OTHER]
    with pytest.raises(UnknownSpace):
        store.switch(SPACE)


def test_a_document_that_changed_meanwhile_takes_no_vector_of_its_old_text(store: Store) -> None:
    store.upsert([book("a"), book("b")], given(unit(1), unit(0, 1)))
    store.add_space(OTHER)
    todo = store.missing(OTHER, 10)
    store.upsert([book("a", "데미안")], given(unit(1)))
    assert store.put_vectors(todo, given(unit(1), unit(1), space=OTHER)) == 1
    assert [document.title for document in store.missing(OTHER, 10)] == ["데미안"]


def test_a_writer_whose_space_is_not_searched_is_refused(store: Store) -> None:
    store.add_space(OTHER)
    with pytest.raises(SpaceMismatch):
        store.upsert([book("a")], given(unit(1), space=OTHER))
    store.upsert([book("a")], given(unit(1), space=OTHER), given(unit(0, 1)))
    assert store.missing(OTHER, 10) == []
    store.switch(OTHER)
    with pytest.raises(SpaceMismatch):
        store.upsert([book("b")], given(unit(1)))
    assert store.get(["b"]) == []


def test_says_what_an_ingest_still_has_to_do(store: Store) -> None:
    done, changed, bare, new = book("a"), book("b"), book("c"), book("d")
    store.upsert([done, changed], given(unit(1), unit(1)))
    store.upsert([bare])
    changed = replace(changed, year=1999)
    todo = store.unfinished([done, changed, bare, new], SPACE)
    assert [document.id for document in todo] == ["b", "c", "d"]
    assert store.upsert([done]).unchanged == 1
    assert store.unfinished([done], SPACE) == []


def test_a_changed_document_loses_its_old_vector(store: Store) -> None:
    store.upsert([book("a")], given(unit(1)))
    store.upsert([book("a", "데미안")])
    assert near(store, 1) == []
    assert store.vector(given(unit(1)), 5)[0].short


def test_finds_the_nearest_to_a_document_without_itself(store: Store) -> None:
    store.upsert([book(id_) for id_ in "abc"], given(unit(1), unit(1, 0.2), unit(0, 1)))
    assert [hit.id for hit in store.similar("a", 2).hits] == ["b", "c"]
    assert near(store, 1)[0] == "a", "and once it was found by others"
    assert [hit.id for hit in store.similar("a", 2).hits] == ["b", "c"]
    with pytest.raises(UnknownDocument):
        store.similar("z", 2)


def test_a_hit_says_which_terms_it_holds(store: Store) -> None:
    store.upsert([book("a", "데미안", author="헤르만 헤세", description="데미안을 만나다")])
    terms = store.analyzer.query_terms("데미안 헤세")
    hit = store.keyword(terms, 5).hits[0]
    assert hit.matched == {"데미", "미안", "헤세"}
    assert hit.coverage(frozenset(terms)) == pytest.approx(3 / 4)


def test_a_small_space_needs_no_index_and_an_unknown_one_has_none(store: Store) -> None:
    store.upsert([book("a")], given(unit(1)))
    assert not store.build_index(SPACE)
    with pytest.raises(UnknownSpace):
        store.build_index(OTHER)


def test_only_the_best_hits_say_which_terms_they_hold(store: Store) -> None:
    store.upsert([book(f"{n:03}") for n in range(MATCHED_MAX + 1)])
    hits = store.keyword(["왕자"], MATCHED_MAX + 1).hits
    assert hits[MATCHED_MAX - 1].matched == {"왕자"}
    assert hits[MATCHED_MAX].matched == frozenset()
    assert hits[MATCHED_MAX].coverage(frozenset({"왕자"})) == 0


def test_an_id_that_was_found_before_is_not_found_once_it_is_gone(store: Store) -> None:
    store.upsert([book("a"), book("b")], given(unit(1), unit(1, 0.1)))
    assert near(store, 1) == ["a", "b"]
    store.delete(["a"])
    store.upsert([book("c")], given(unit(1)))
    assert near(store, 1) == ["c", "b"]


def test_what_another_process_wrote_is_found(store: Store, opened: Callable[[], Store]) -> None:
    second = opened()
    store.upsert([book("a")], given(unit(1)))
    assert words(second, "왕자") == near(second, 1) == ["a"]
    second.delete(["a"])
    second.upsert([book("b")], given(unit(1)))
    assert words(store, "왕자") == near(store, 1) == ["b"]


def test_a_longer_list_begins_with_the_shorter_one(store: Store) -> None:
    draw = np.random.default_rng(7)
    rows = draw.normal(size=(300, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    books = [
        book(f"n{n:03}", draw.choice(["어린 왕자", "왕자와 거지", "거지"])) for n in range(300)
    ]
    store.upsert(books, Vectors(SPACE, rows))
    for found in (lambda n: near(store, 1, limit=n), lambda n: words(store, "어린 왕자", n)):
        whole = found(1000)
        assert len(set(whole)) == len(whole)
        for limit in (0, 1, 10, 33, 150):
            assert found(limit) == whole[:limit]


def test_a_selective_filter_keeps_every_near_one(store: Store) -> None:
    draw = np.random.default_rng(11)
    rows = draw.normal(size=(1000, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rare = set(range(0, 1000, 100))
    books = [book(f"n{n:03}", category="드문" if n in rare else "흔한") for n in range(1000)]
    store.upsert(books, Vectors(SPACE, rows))
    leg = store.vector(Vectors(SPACE, rows[:1]), 10, Filter(category="드문"))[0]
    order = sorted(rare, key=lambda n: -float(rows[n] @ rows[0]))
    assert [hit.id for hit in leg.hits] == [f"n{n:03}" for n in order]
    assert leg.exact
    assert not leg.short


def test_readers_see_whole_batches_while_a_writer_works(store: Store) -> None:
    stop, seen, errors = threading.Event(), set[int](), list[Exception]()

    def read() -> None:
        try:
            while not stop.is_set():
                seen.add(len(near(store, 1, limit=100)) % 10)
                seen.add(len(words(store, "왕자", 100)) % 10)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(0, 50, 10):
        ids = [f"b{n}" for n in range(start, start + 10)]
        store.upsert([book(id_) for id_ in ids], given(*[unit(1)] * 10))
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert seen == {0}


NASTY = ("", "C++", "a OR", '"', "NEAR(", "title:x", "\0", "\ud800", "😀", "' & | !", "*", "\\")
NASTY += ("가" * 100_000,)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_text_breaks_a_query(store: Store, text: str) -> None:
    store.upsert([book("a", "C++ 표준 라이브러리")])
    assert words(store, text) == (["a"] if text == "C++" else [])


@pytest.mark.parametrize("bad", [book(""), book("x" * 201), book("a", "\0"), book("a", "\ud800")])
def test_what_cannot_be_kept_is_refused_whole(store: Store, bad: Document) -> None:
    with pytest.raises(BadDocument):
        store.upsert([book("fine"), bad])
    assert store.stats().documents == 0


@pytest.mark.parametrize(
    "rows",
    [np.ones((2, DIM)), np.ones((1, 3)), np.full((1, DIM), np.nan)],
    ids=["many", "narrow", "nan"],
)
def test_vectors_that_do_not_fit_are_refused(store: Store, rows: np.ndarray) -> None:
    with pytest.raises(BadVectors):
        store.upsert([book("a")], Vectors(SPACE, rows.astype(np.float32)))
    assert store.get(["a"]) == []
