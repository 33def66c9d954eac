"""What every ledger promises, looped over the adapters."""

from collections.abc import Callable

import pytest

from tailrace.core.errors import ModelError
from tailrace.tickets.memory import MemoryLedger
from tailrace.tickets.port import Ledger, Outcome, State, TicketExpired, TicketUnknown

ADAPTERS: dict[str, Callable[[float, int], Ledger]] = {
    "memory": MemoryLedger,
}


@pytest.fixture(params=list(ADAPTERS))
def make(request: pytest.FixtureRequest) -> Callable[[float, int], Ledger]:
    return ADAPTERS[request.param]


@pytest.fixture
def ledger(make: Callable[[float, int], Ledger]) -> Ledger:
    return make(3600.0, 1000)


def test_tickets_are_claimed_in_the_order_in_which_they_were_entered(ledger: Ledger) -> None:
    ids = [ledger.submit(f"text {i}", 1.0, float(i)).id for i in range(10)]
    claimed = []
    while claim := ledger.claim(20.0, 60.0):
        claimed.append(claim.ticket.id)
    assert claimed == ids
    assert ledger.claim(20.0, 60.0) is None


def test_a_ticket_gives_back_the_body_it_was_entered_with(ledger: Ledger) -> None:
    body = {"text": "국물이 깊다", "n": 3}
    ledger.submit(body, 2.5, 1.0)
    claim = ledger.claim(1.0, 60.0)
    assert claim is not None
    assert (claim.ticket.body, claim.ticket.cost, claim.ticket.submitted) == (body, 2.5, 1.0)


def test_numbers_cannot_be_guessed_from_one_another(ledger: Ledger) -> None:
    ids = [ledger.submit("x", 1.0, 0.0).id for _ in range(200)]
    assert len(set(ids)) == 200
    assert all(len(number) >= 20 for number in ids)
    assert len({number[:4] for number in ids}) > 190


def test_the_costs_of_those_ahead_come_in_order_and_the_first_has_none(ledger: Ledger) -> None:
    tickets = [ledger.submit("x", float(cost), 0.0) for cost in (3, 1, 2)]
    assert [ledger.ahead(ticket.id) for ticket in tickets] == [[], [3.0], [3.0, 1.0]]
    assert ledger.waiting() == [3.0, 1.0, 2.0]


def test_a_finished_ticket_carries_its_result_and_its_times(ledger: Ledger) -> None:
    ticket = ledger.submit("x", 1.0, 0.0)
    claim = ledger.claim(1.0, 60.0)
    assert claim is not None
    assert ledger.finish(ticket.id, claim.token, Outcome("answer", None, 1.5, 0.5), 2.0)
    done = ledger.get(ticket.id)
    assert (done.state, done.result, done.waited_s, done.service_s, done.finished) == (
        State.DONE,
        "answer",
        1.5,
        0.5,
        2.0,
    )
    assert ledger.ahead(ticket.id) is None


def test_a_ticket_with_an_error_ends_as_failed_and_keeps_the_errors_code(ledger: Ledger) -> None:
    ticket = ledger.submit("x", 1.0, 0.0)
    claim = ledger.claim(1.0, 60.0)
    assert claim is not None
    ledger.finish(ticket.id, claim.token, Outcome(error=ModelError("it broke")), 2.0)
    failed = ledger.get(ticket.id)
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert (failed.error.code, str(failed.error)) == ("model-failed", "it broke")


def test_an_old_token_changes_nothing(ledger: Ledger) -> None:
    ticket = ledger.submit("x", 1.0, 0.0)
    old = ledger.claim(0.0, 5.0)
    ledger.sweep(6.0)
    new = ledger.claim(6.0, 5.0)
    assert old is not None
    assert new is not None
    assert not ledger.finish(ticket.id, old.token, Outcome("late"), 7.0)
    assert not ledger.release(ticket.id, old.token)
    assert ledger.get(ticket.id).state is State.RUNNING
    assert ledger.finish(ticket.id, new.token, Outcome("in time"), 8.0)
    assert not ledger.finish(ticket.id, new.token, Outcome("twice"), 9.0)
    assert ledger.get(ticket.id).result == "in time"


def test_the_token_of_one_ticket_does_not_open_another(ledger: Ledger) -> None:
    first, second = ledger.submit("x", 1.0, 0.0), ledger.submit("y", 1.0, 0.0)
    claim = ledger.claim(0.0, 60.0)
    assert claim is not None
    assert claim.ticket.id == first.id
    assert not ledger.finish(second.id, claim.token, Outcome("not mine"), 1.0)
    assert ledger.get(second.id).state is State.QUEUED


def test_a_returned_ticket_takes_its_old_place_before_those_who_came_later(ledger: Ledger) -> None:
    ids = [ledger.submit("x", 1.0, 0.0).id for _ in range(4)]
    one, two = ledger.claim(0.0, 60.0), ledger.claim(0.0, 60.0)
    assert one is not None
    assert two is not None
    assert ledger.release(two.ticket.id, two.token)
    assert ledger.release(one.ticket.id, one.token)
    assert [len(ledger.ahead(i) or []) for i in ids] == [0, 1, 2, 3]


def test_a_lease_that_ran_out_returns_the_ticket_and_one_that_did_not_stays(
    ledger: Ledger,
) -> None:
    first, second = ledger.submit("x", 1.0, 0.0), ledger.submit("y", 1.0, 0.0)
    ledger.claim(0.0, 5.0)
    ledger.claim(0.0, 50.0)
    ledger.sweep(10.0)
    assert ledger.get(first.id).state is State.QUEUED
    assert ledger.get(second.id).state is State.RUNNING


def test_a_ticket_whose_answer_is_known_is_born_done_and_never_stands_in_line(
    ledger: Ledger,
) -> None:
    ticket = ledger.submit("x", 1.0, 0.0, Outcome("known"))
    assert (ticket.state, ticket.result) == (State.DONE, "known")
    assert ledger.waiting() == []
    assert ledger.claim(0.0, 60.0) is None
    assert ledger.get(ticket.id).result == "known"


def test_results_are_kept_for_their_time_and_then_known_as_expired(
    make: Callable[[float, int], Ledger],
) -> None:
    ledger = make(10.0, 1000)
    ticket = ledger.submit("x", 1.0, 0.0, Outcome("answer"))
    ledger.sweep(9.9)
    assert ledger.get(ticket.id).result == "answer"
    ledger.sweep(10.1)
    with pytest.raises(TicketExpired):
        ledger.get(ticket.id)


def test_the_oldest_results_make_room_when_too_many_are_kept(
    make: Callable[[float, int], Ledger],
) -> None:
    ledger = make(3600.0, 3)
    ids = [ledger.submit("x", 1.0, float(i), Outcome(i)).id for i in range(5)]
    for number in ids[:2]:
        with pytest.raises(TicketExpired):
            ledger.get(number)
    assert [ledger.get(number).result for number in ids[2:]] == [2, 3, 4]
    assert ledger.counts()[State.DONE] == 3


def test_a_number_that_was_never_given_out_is_unknown(ledger: Ledger) -> None:
    for number in ("", "x", "..", "\0", "a" * 10_000):
        with pytest.raises(TicketUnknown):
            ledger.get(number)
        assert ledger.ahead(number) is None
        assert not ledger.finish(number, 1, Outcome("x"), 0.0)


def test_waiting_tickets_never_expire_however_long_they_wait(
    make: Callable[[float, int], Ledger],
) -> None:
    ledger = make(1.0, 1)
    ids = [ledger.submit("x", 1.0, 0.0).id for _ in range(5)]
    ledger.sweep(1e6)
    assert all(ledger.get(number).state is State.QUEUED for number in ids)


def test_counts_name_every_state_from_the_start(ledger: Ledger) -> None:
    assert ledger.counts() == dict.fromkeys(State, 0)
