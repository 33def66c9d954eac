"""Text to terms, and what Korean readers really type: spacing, particles, loanwords, by class."""

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.search.morphemes import Morphemes
from tailrace.search.text import TERM_CHARS_MAX, Bigrams
from tailrace.stores.port import TERMS_MAX, Analyzer, Document
from tailrace.stores.sqlite import SqliteStore

DATA = json.loads((Path(__file__).parent.parent / "data" / "korean_titles.json").read_text("utf-8"))
ANALYZERS = [Bigrams(), Morphemes()]


@pytest.fixture(scope="module", params=ANALYZERS, ids=["bigrams", "morphemes"])
def shelf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SqliteStore, Analyzer]]:
    """The titles among four hundred decoys made of their own words."""
    titles = DATA["titles"]
    draw = random.Random(4)
    words = [word for title in titles for word in title.split()]
    decoys = {" ".join(draw.sample(words, draw.randint(2, 4))) for _ in range(400)} - set(titles)
    store = SqliteStore(tmp_path_factory.mktemp("shelf") / "t.sqlite", request.param)
    store.upsert([Document(title, title) for title in titles])
    store.upsert([Document(f"decoy {n:03}", text) for n, text in enumerate(sorted(decoys))])
    yield store, request.param
    store.close()


@pytest.mark.parametrize("kind", ["spacing", "particle", "loanword", "mixed", "number"])
def test_titles_are_found_as_people_type_them(
    shelf: tuple[SqliteStore, Analyzer], kind: str
) -> None:
    store, analyzer = shelf
    missed = []
    asked = [(query, title) for of, query, title in DATA["queries"] if of == kind]
    for query, title in asked:
        hits = store.keyword(analyzer.query_terms(query), 10).hits
        if title not in [hit.id for hit in hits]:
            missed.append(query)
    assert len(asked) >= 4
    assert not missed


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("어린 왕자", ["어린", "린왕", "왕자"]),
        ("흰 한강", ["흰", "흰한", "한강"]),
        ("C++, C# 그리고 .NET", ["c++", "c#", "그리", "리고", "net"]),
        ("1,000가지 3.5", ["1000", "가지", "3", "5"]),
        ("ＡＢＣ Café", ["abc", "café"]),
        ("a OR NEAR( title:x", ["a", "or", "near", "title", "x"]),
        ("\ud800가나\0다", ["가나", "다", "나다"]),
        ("😀 \0 \"'", []),
        ("हिन्दी", ["हिन्दी"]),
    ],
)
def test_what_becomes_a_term(text: str, terms: list[str]) -> None:
    assert Bigrams().query_terms(text) == terms


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ("알베르 카뮈", "알베르 까뮈"),
        ("표도르 도스토옙스키", "표도르 또스또옙스끼"),
        ("파리의 노트르담", "빠리의 노트르담"),
        ("생텍쥐페리", "생떽쥐베리"),
        ("세익스피어", "쎄익스삐어"),
        ("찌라시", "치라시"),
        ("레미제라블", "래미재라블"),
        ("왠지", "웬지"),
    ],
)
def test_letters_of_one_sound_are_one(written: str, otherwise: str) -> None:
    assert Bigrams().query_terms(written) == Bigrams().query_terms(otherwise)


@pytest.mark.parametrize(("one", "other"), [("바다", "마다"), ("고기", "거기"), ("산", "삼")])
def test_letters_of_other_sounds_stay_apart(one: str, other: str) -> None:
    assert Bigrams().query_terms(one) != Bigrams().query_terms(other)


def test_decomposed_hangul_is_the_same_text() -> None:
    apart = unicodedata.normalize("NFD", "나미야 잡화점")
    assert Bigrams().query_terms(apart) == Bigrams().query_terms("나미야 잡화점")


def test_names_that_the_dictionary_keeps_whole_are_split() -> None:
    whole = Morphemes().document_terms("무라카미하루키의 소설")
    assert {"·무라카미", "·하루키"} <= set(whole)


def test_analysers_are_told_apart_by_their_fingerprints() -> None:
    assert len({analyzer.fingerprint for analyzer in ANALYZERS}) == 2


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=["bigrams", "morphemes"])
@given(text=st.text(st.characters(), max_size=200))
def test_any_text_gives_terms_that_a_store_can_hold(analyzer: Analyzer, text: str) -> None:
    for term in (*analyzer.document_terms(text), *analyzer.query_terms(text)):
        assert term
        assert len(term) <= TERM_CHARS_MAX + 4
        assert not any(c.isspace() for c in term)
        assert all(c.isalnum() or c in "+#" for c in term if c.isascii())
        term.encode()


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=["bigrams", "morphemes"])
def test_a_huge_query_is_bounded(analyzer: Analyzer) -> None:
    letters = "".join(chr(0xAC00 + n % 11172) for n in range(100_000))
    assert len(analyzer.query_terms(letters)) <= TERMS_MAX
    assert len(analyzer.query_terms("a" * 100_000)[0]) <= TERM_CHARS_MAX
