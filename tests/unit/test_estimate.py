"""How long a run takes, and when waiting work would start."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.estimate import RESIDUAL_FLOOR, ServiceTime, residual_s, start_in_s


def test_before_the_first_run_the_prior_speaks_in_proportion() -> None:
    service = ServiceTime(prior_s=2.0, prior_cost=100.0)
    assert service.seconds(100.0) == 2.0
    assert service.seconds(50.0) == 1.0
    assert (service.seen, service.typical_cost) == (0, 100.0)


@settings(max_examples=60, deadline=None)
@given(
    a=st.floats(0.0, 2.0),
    b=st.floats(0.001, 0.05),
    costs=st.lists(st.floats(10.0, 500.0), min_size=8, max_size=40),
)
def test_a_line_is_recovered_from_points_on_it(a: float, b: float, costs: list[float]) -> None:
    service = ServiceTime()
    for cost in [*costs, 20.0, 400.0, 100.0]:
        service.learn(cost, a + b * cost)
    for cost in (20.0, 100.0, 400.0):
        assert service.seconds(cost) == pytest.approx(a + b * cost, rel=0.01, abs=1e-6)


def test_where_all_runs_cost_the_same_their_time_is_what_is_expected() -> None:
    service = ServiceTime()
    for _ in range(20):
        service.learn(300.0, 0.8)
    assert service.seconds(300.0) == pytest.approx(0.8)
    assert service.seconds(150.0) == pytest.approx(0.4)


def test_a_slower_model_is_noticed_within_some_ten_runs() -> None:
    service = ServiceTime()
    for _ in range(50):
        service.learn(100.0, 1.0)
    for _ in range(12):
        service.learn(100.0, 2.0)
    assert service.seconds(100.0) > 1.9


costs = st.one_of(st.just(0.0), st.floats(0.01, 1e4))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(costs, st.floats(0.0, 1e3)), min_size=1, max_size=40),
    costs,
)
def test_whatever_was_seen_the_expectation_is_finite_and_not_negative(
    seen: list[tuple[float, float]], cost: float
) -> None:
    service = ServiceTime()
    for at, seconds in seen:
        service.learn(at, seconds)
    a, b = service.fit()
    assert a >= 0.0
    assert b >= 0.0
    assert 0.0 <= service.seconds(cost) < float("inf")


def test_a_run_that_outlasts_its_estimate_is_expected_to_need_a_share_more() -> None:
    assert residual_s(2.0, 0.5) == 1.5
    assert residual_s(2.0, 1.9) == pytest.approx(RESIDUAL_FLOOR * 2.0)
    assert residual_s(2.0, 60.0) == pytest.approx(RESIDUAL_FLOOR * 2.0)


def brute_force(free: list[float], ahead: list[float], step: float = 0.125) -> float:
    """Walk through time: at each step give every free slot the next run; say when one more would start."""
    slots, line = list(free), list(ahead)
    for tick in count():
        now = tick * step
        for i, until in enumerate(slots):
            if until <= now:
                if not line:
                    return now
                slots[i] = now + line.pop(0)
    raise AssertionError


grid = st.integers(0, 24).map(lambda n: n * 0.125)


@settings(max_examples=150, deadline=None)
@given(
    free=st.lists(grid, min_size=1, max_size=4),
    ahead=st.lists(st.integers(1, 24).map(lambda n: n * 0.125), max_size=12),
)
def test_list_scheduling_agrees_with_playing_time_forward(
    free: list[float], ahead: list[float]
) -> None:
    assert start_in_s(free, ahead) == brute_force(free, ahead)


def test_an_idle_lane_starts_at_once() -> None:
    assert start_in_s([0.0, 3.0], []) == 0.0
