"""Until when an answer is of use to the one who asked."""

from math import inf

import pytest
from starlette.requests import Request

from tailrace.core.clock import MonotonicClock
from tailrace.core.errors import InputError
from tailrace.serve.account import ACCOUNT, Account
from tailrace.serve.arrival import ARRIVED
from tailrace.serve.exchange import SENDING_S, Exchange


def deadline(given: str | None) -> float:
    """Seconds from arrival."""
    headers = [] if given is None else [(b"x-deadline-ms", given.encode())]
    scope = {"type": "http", "headers": headers, ARRIVED: 5.0, ACCOUNT: Account()}
    return Exchange(Request(scope), MonotonicClock()).deadline() - 5.0


@pytest.mark.parametrize(
    ("given", "ends_s"), [("1000", 1 - SENDING_S), ("100", 0.095), ("1", 0.00095)]
)
def test_work_ends_early_enough_for_the_answer_to_arrive_in_time(given: str, ends_s: float) -> None:
    assert deadline(given) == pytest.approx(ends_s)


def test_who_sets_no_deadline_waits_as_long_as_it_takes() -> None:
    assert deadline(None) == inf


@pytest.mark.parametrize("given", ["0", "-5", "nan", "soon", ""])
def test_what_is_no_time_is_a_mistake_of_the_caller(given: str) -> None:
    with pytest.raises(InputError):
        deadline(given)
