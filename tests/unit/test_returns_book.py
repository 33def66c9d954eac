"""The book of returns by plain calls."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.returns import HORIZON_S, PACE_MARGIN, ReturnBook, Spread


def test_returns_are_multiples_of_the_step_and_at_least_one() -> None:
    book = ReturnBook(1.0)
    for _ in range(20):
        assert book.book(0.0, 5, 5, 0.1) % 1.0 == 0.0
    assert ReturnBook(1.0).book(0.0, 0, 5, 0.1) == 1.0


def test_a_slow_model_spaces_returns_by_its_pace() -> None:
    book = ReturnBook(1.0)
    told = [book.book(0.0, 5, 5, 3.0) for _ in range(6)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(told)]
    assert all(gap >= 3.0 for gap in gaps)


def test_a_fast_model_lets_as_many_return_in_one_second_as_it_has_places() -> None:
    book = ReturnBook(1.0)
    told = [book.book(0.0, 5, 5, 0.05) for _ in range(20)]
    assert max(told.count(second) for second in set(told)) == 5


def test_what_was_booked_long_ago_is_forgotten() -> None:
    book = ReturnBook(1.0)
    for _ in range(40):
        book.book(0.0, 5, 5, 1.0)
    assert book.book(1000.0, 5, 5, 1.0) == ReturnBook(1.0).book(1000.0, 5, 5, 1.0)


def test_nobody_is_sent_beyond_the_horizon() -> None:
    book = ReturnBook(1.0)
    assert max(book.book(0.0, 5, 5, 600.0) for _ in range(50)) <= HORIZON_S


@pytest.mark.parametrize("pace_s", [0.0, 1e-9, 1e9])
def test_absurd_paces_do_not_hang_or_raise(pace_s: float) -> None:
    book = ReturnBook(0.01)
    for _ in range(100):
        assert 0.0 < book.book(0.0, 1000, 1, pace_s) <= HORIZON_S


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(1, 60),
    places=st.integers(1, 10),
    pace_s=st.floats(0.01, 5.0),
    step_s=st.sampled_from([0.01, 1.0]),
)
def test_played_forward_at_the_planned_pace_every_return_finds_a_place(
    count: int, places: int, pace_s: float, step_s: float
) -> None:
    book = ReturnBook(step_s)
    returns = sorted(book.book(0.0, places, places, pace_s) for _ in range(count))
    line, before = float(places), 0.0
    for at in returns:
        line = max(0.0, line - (at - before) / (pace_s * PACE_MARGIN))
        line, before = line + 1, at
        assert line <= places + 1e-6


def test_returns_that_become_possible_at_the_same_moment_are_spread_at_the_lanes_pace() -> None:
    spread = Spread()
    told = [spread.book(10.0, 0.5, 0.1) for _ in range(4)]
    assert told[0] == pytest.approx(0.5 * PACE_MARGIN)
    gaps = [later - sooner for sooner, later in itertools.pairwise(told)]
    assert gaps == pytest.approx([0.1 * PACE_MARGIN] * 3)
    assert spread.book(20.0, 0.5, 0.1) == pytest.approx(0.5 * PACE_MARGIN)
