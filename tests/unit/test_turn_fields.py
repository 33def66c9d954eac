"""A JSON object of strings is read while it is written: a prefix at every moment, whole only when closed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.apps.books.turn.fields import FlatObject, NotFlat

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(st.dictionaries(NAMES, TEXTS, max_size=4), st.booleans(), st.lists(st.integers(1, 7)))
def test_cut_anywhere_the_pieces_are_prefixes_and_the_end_is_the_object(
    wanted: dict[str, str],
    ascii_only: bool,
    steps: list[int],
) -> None:
    text = json.dumps(wanted, ensure_ascii=ascii_only)
    reader = FlatObject()
    said: dict[str, str] = {}
    at = 0
    for step in [*steps, len(text)]:
        for part in reader.feed(text[at : at + step]):
            said[part.name] = said.get(part.name, "") + part.text
            assert wanted[part.name].startswith(said[part.name])
            assert not part.closed or wanted[part.name] == said[part.name]
        assert reader.values == {name: wanted[name] for name in reader.values}
        at += step
    assert reader.complete
    assert reader.values == wanted


def test_a_code_fence_is_passed_over() -> None:
    reader = FlatObject()
    reader.feed('```json\n{"a": "b"}\n```')
    assert reader.complete
    assert reader.values == {"a": "b"}


def test_half_a_pair_is_no_character() -> None:
    reader = FlatObject()
    reader.feed('{"a": "\\ud83dx\\udc00", "b": "\\ud83d\\ude00"}')
    assert reader.values == {"a": "\ufffdx\ufffd", "b": "😀"}


@pytest.mark.parametrize(
    "text",
    [
        "Sure! Here you go: {}",
        '{"a": 1}',
        '{"a": "b" "c": "d"}',
        '{"a": "b",}',
        '{"a": "\\x"}',
        '{"a": "\\u12g4"}',
        '{"a": "line\nbreak"}',
        '{"a": "b", "a": "c"}',
        '["a"]',
        '{"a": "b"} and more',
    ],
)
def test_what_is_no_flat_object_is_refused_not_mended(text: str) -> None:
    with pytest.raises(NotFlat):
        FlatObject().feed(text)


def test_an_open_object_is_never_whole() -> None:
    text = '{"short_1": "좋아요", "long_1": "길게'
    reader = FlatObject()
    reader.feed(text)
    assert not reader.complete
    assert reader.values == {"short_1": "좋아요"}
