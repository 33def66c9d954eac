"""Specs and reasons are checked before anybody sees them."""

import pytest

from tailrace.apps.books.turn import reasons
from tailrace.apps.books.turn.spec import BadSpec, Message, grounded, last_words, read_spec

SAID = [Message(role="user", content="비 오는 날 읽기 좋은 잔잔한 소설 추천해 줘")]


def test_a_spec_is_read_and_what_nobody_has_is_dropped() -> None:
    text = '{"query": " 잔잔한  소설 ", "category": "요리", "author": "", "year_from": 1990}'
    spec = read_spec(text, ["소설/한국"])
    assert spec.query == "잔잔한 소설"
    assert spec.category is None
    assert spec.author is None
    assert spec.year_from == 1990
    assert read_spec('{"query": "가", "category": "소설"}', ["소설/한국"]).category == "소설"


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "[]",
        '{"query": ""}',
        '{"query": "  "}',
        '{"query": "가", "year_from": 2001, "year_to": 2000}',
        '{"query": "가", "year_from": "soon"}',
    ],
)
def test_an_unusable_spec_says_why(text: str) -> None:
    with pytest.raises(BadSpec):
        read_spec(text, [])


def test_a_query_from_nowhere_is_told_from_one_that_was_asked() -> None:
    asked = last_words(SAID)
    assert grounded(asked, SAID)
    assert grounded(asked.model_copy(update={"query": "잔잔한 소설"}), SAID)
    assert not grounded(asked.model_copy(update={"query": "The quick brown fox"}), SAID)


def test_reasons_have_a_place_and_a_length() -> None:
    assert reasons.place("short_2", 3) == ("short", 1)
    assert reasons.place("long_3", 3) == ("long", 2)
    assert reasons.place("long_4", 3) is None
    assert reasons.place("other_1", 3) is None
    assert reasons.usable("short", " 잔잔하고\n따뜻한 이야기 ") == "잔잔하고 따뜻한 이야기"
    assert reasons.usable("short", "…") is None
    assert reasons.usable("short", "가" * 81) is None
    shape = reasons.schema(2)
    assert list(shape["properties"]) == ["short_1", "short_2", "long_1", "long_2"]
