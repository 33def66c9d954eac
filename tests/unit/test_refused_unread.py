"""What is said of texts before they are read."""

import pytest

from tailrace.serve.foresight import TEXTS_SEEN_MAX, Foresight


def test_before_anything_was_read_nothing_is_counted_on() -> None:
    assert Foresight().tokens(10_000) == 0.0


def test_as_many_tokens_are_expected_as_texts_usually_make() -> None:
    foresight = Foresight()
    for number in range(200):
        foresight.read([number], 400, 100.0)
    assert foresight.tokens(400) == pytest.approx(100)


def test_it_follows_texts_of_another_kind() -> None:
    foresight = Foresight()
    foresight.read(["dense"], 100, 100.0)
    for number in range(200):
        foresight.read([number], 100, 20.0)
    assert foresight.tokens(100) == pytest.approx(20, rel=0.01)


def test_a_text_that_was_here_is_known_and_the_oldest_are_forgotten_first() -> None:
    foresight = Foresight()
    foresight.read(["first"], 5, 1.0)
    assert foresight.seen(["new", "first"])
    assert not foresight.seen(["new"])
    foresight.read(range(TEXTS_SEEN_MAX), 5, 1.0)
    assert not foresight.seen(["first"])
