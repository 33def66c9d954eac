"""The replay: the real lane on a virtual clock, with callers before it."""

import numpy as np
import pytest

from tailrace.core.batch import BatchRule
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.replay import replay
from tailrace.simulate.theory import lindley_waits
from tailrace.simulate.visits import Replayed, Stay, Visit

SEED = 20261201


def alone(weights):
    return sum(weights)


def visits(arrivals, services):
    return [Visit(float(a), weight=float(s)) for a, s in zip(arrivals, services, strict=True)]


def waits(replayed: Replayed) -> np.ndarray:
    return np.array([stay.queue_s for stay in replayed.stays])


def assert_adds_up(stays: list[Stay]) -> None:
    for stay in stays:
        parts = stay.before_s + stay.queue_s + stay.service_s + stay.after_s + stay.paused_s
        assert parts == pytest.approx(stay.wall_s, abs=1e-9)
        assert min(stay.before_s, stay.queue_s, stay.service_s, stay.after_s) >= -1e-9


def test_a_fifo_lane_waits_exactly_as_lindley_says():
    rng = np.random.default_rng(SEED)
    arrivals = np.cumsum(rng.exponential(1.0, 500))
    services = rng.lognormal(-0.5, 0.5, 500)
    replayed = replay(visits(arrivals, services), LanePlan(), alone)
    assert waits(replayed) == pytest.approx(lindley_waits(arrivals, services), abs=1e-6)
    assert_adds_up(replayed.stays)


def test_twelve_at_once_with_four_seats_leave_five_answered_and_seven_refused_at_once():
    twelve = [Visit(0.0, before_s=0.1, after_s=0.2) for _ in range(12)]
    stays = replay(twelve, LanePlan(seats=4), alone).stays
    refused = [stay for stay in stays if stay.outcome == "refused"]
    assert len(refused) == 7
    assert {stay.status for stay in refused} == {429}
    assert all(stay.wall_s == pytest.approx(0.3) for stay in refused)
    assert max(stay.wall_s for stay in stays) == pytest.approx(5.3)
    assert_adds_up(stays)


def test_who_waits_past_the_queue_timeout_is_told_then():
    stays = replay([Visit(0.0)] * 4, LanePlan(queue_timeout_s=1.5), alone).stays
    assert [stay.status for stay in stays] == [200, 200, 503, 503]
    assert stays[3].wall_s == stays[3].queue_s == pytest.approx(1.5)


def test_a_shared_run_waits_for_company_and_takes_what_its_size_takes():
    plan = LanePlan(shares=True, batch=BatchRule(items_max=3, window_s=0.25))
    came = [Visit(at) for at in (0.0, 0.1, 0.2, 0.21)]
    stays = replay(came, plan, lambda weights: 1.0 + 0.1 * len(weights)).stays
    assert [stay.batch for stay in stays] == [3, 3, 3, 1]
    assert stays[0].queue_s == pytest.approx(0.2)
    assert stays[0].service_s == pytest.approx(1.3)
    assert_adds_up(stays)


def test_a_caller_who_stops_waiting_is_cut_off_and_frees_the_seat():
    callers = CallerPlan(timeout_s=1.5)
    stays = replay([Visit(0.0)] * 3, LanePlan(), alone, callers=callers).stays
    assert [stay.outcome for stay in stays] == ["ok", "timeout", "timeout"]
    assert [stay.wall_s for stay in stays] == pytest.approx([1.0, 1.5, 1.5])
    assert stays[1].service_s == pytest.approx(0.5), "half a second of it had begun"
    assert stays[2].service_s == 0.0
    assert_adds_up(stays)


def test_who_asks_again_after_a_refusal_is_booked_over_all_tries():
    callers = CallerPlan(retries=2, pause_s=1.0)
    stays = replay([Visit(0.0)] * 2, LanePlan(seats=0), alone, callers=callers).stays
    assert [stay.outcome for stay in stays] == ["ok", "ok"]
    assert stays[1].tries == 2
    assert stays[1].paused_s == pytest.approx(1.0)
    assert_adds_up(stays)


def test_a_desk_brings_tickets_one_by_one_even_to_a_lane_of_more_slots():
    plan = LanePlan(slots=2, tickets=True, seats=20)
    callers = CallerPlan(poll_s=0.3)
    stays = replay([Visit(0.0)] * 3, plan, alone, callers=callers).stays
    assert [stay.queue_s for stay in stays] == pytest.approx([0.0, 1.0, 2.0])
    assert [stay.wall_s for stay in stays] == pytest.approx([1.2, 2.1, 3.0]), (
        "seen at the next look"
    )
    assert_adds_up(stays)


def test_in_a_closed_loop_the_next_request_waits_for_the_answer_before():
    stays = replay([Visit(0.5)] * 4, LanePlan(), alone, closed=1).stays
    assert [stay.at_s for stay in stays] == pytest.approx([0.5, 2.0, 3.5, 5.0])
    assert all(stay.queue_s == 0.0 for stay in stays)


def test_the_time_between_two_runs_keeps_the_slot_but_is_no_service():
    stays = replay([Visit(0.0)] * 2, LanePlan(), alone, turnaround_s=0.5).stays
    assert [stay.service_s for stay in stays] == pytest.approx([1.0, 1.0])
    assert stays[1].queue_s == pytest.approx(1.5)
    assert_adds_up(stays)


def test_an_answer_that_is_known_needs_no_run():
    stays = replay([Visit(0.0), Visit(0.0, known=True, after_s=0.1)], LanePlan(), alone).stays
    assert stays[1].wall_s == pytest.approx(0.1)
    assert stays[1].service_s == stays[1].queue_s == 0.0


def test_waiting_in_somebody_elses_line_comes_before_the_lane():
    (stay,) = replay([Visit(0.0, elsewhere_s=0.4)], LanePlan(), alone).stays
    assert stay.queue_s == pytest.approx(0.4)
    assert stay.wall_s == pytest.approx(1.4)
