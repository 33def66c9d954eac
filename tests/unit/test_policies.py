"""Policies by plain calls: a still picture of the lane in, a latest start or a refusal out."""

from itertools import permutations
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.admission import AllOf, LaneView, Policy
from tailrace.core.errors import Infeasible, LaneFull, MemoryPressure, RateLimited, Rejected
from tailrace.core.events import Settled
from tailrace.core.work import Stamps, Work
from tailrace.policies import memory_pressure
from tailrace.policies.deadline_feasible import DeadlineFeasible
from tailrace.policies.memory_pressure import MemoryPressurePolicy, memory_used_share
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.rate_limit import RateLimit
from tailrace.policies.waiting_room import WaitingRoom


def view(**more: float) -> LaneView:
    picture = {
        "now": 100.0,
        "waiting": 0,
        "running": 0,
        "free": 1,
        "start_in_s": 0.0,
        "service_s": 1.0,
    }
    return LaneView(**{**picture, **more})  # type: ignore[arg-type]


def work(**more: object) -> Work:
    return Work("x", Stamps(100.0), **more)  # type: ignore[arg-type]


class TestWaitingRoom:
    def test_whoever_finds_a_free_slot_needs_no_seat(self) -> None:
        assert WaitingRoom(0).admit(work(), view(free=1)) == inf

    @pytest.mark.parametrize(("waiting", "fits"), [(0, True), (3, True), (4, False), (9, False)])
    def test_as_many_wait_as_there_are_seats_and_not_one_more(
        self, waiting: int, fits: bool
    ) -> None:
        room, picture = WaitingRoom(4), view(free=0, waiting=waiting)
        if fits:
            assert room.admit(work(), picture) == inf
        else:
            with pytest.raises(LaneFull, match="All 4 seats"):
                room.admit(work(), picture)

    def test_a_room_without_seats_takes_only_who_starts_at_once(self) -> None:
        with pytest.raises(LaneFull):
            WaitingRoom(0).admit(work(), view(free=0))


class TestQueueTimeout:
    def test_the_latest_start_is_so_many_seconds_from_now(self) -> None:
        assert QueueTimeoutPolicy(15.0).admit(work(), view(now=100.0)) == 115.0


class TestDeadlineFeasible:
    def test_work_without_a_deadline_may_start_any_time(self) -> None:
        assert DeadlineFeasible().admit(work(), view(start_in_s=1e9)) == inf

    def test_the_latest_start_leaves_time_for_the_run(self) -> None:
        assert DeadlineFeasible().admit(work(deadline=105.0), view(service_s=1.5)) == 103.5

    def test_what_would_be_late_is_refused_with_the_time_it_would_take(self) -> None:
        with pytest.raises(Infeasible, match="expected in 3000 ms; the deadline is in 2500 ms"):
            DeadlineFeasible().admit(work(deadline=102.5), view(start_in_s=2.0))

    def test_it_says_when_the_same_deadline_would_be_feasible(self) -> None:
        with pytest.raises(Infeasible) as refusal:
            DeadlineFeasible().admit(work(deadline=102.5), view(start_in_s=2.0))
        assert refusal.value.retry_after_s == pytest.approx(0.5)

    def test_exactly_in_time_is_in_time(self) -> None:
        assert DeadlineFeasible().admit(work(deadline=103.0), view(start_in_s=2.0)) == 102.0

    def test_slack_refuses_earlier(self) -> None:
        picture = view(start_in_s=2.0)
        DeadlineFeasible(1.0).admit(work(deadline=103.1), picture)
        with pytest.raises(Infeasible):
            DeadlineFeasible(1.2).admit(work(deadline=103.1), picture)

    def test_a_deadline_in_the_past_is_refused_and_never_shown_as_negative(self) -> None:
        with pytest.raises(Infeasible, match="the deadline is in 0 ms"):
            DeadlineFeasible().admit(work(deadline=90.0), view())


class TestRateLimit:
    def test_a_burst_is_let_in_and_the_next_one_is_told_when_to_return(self) -> None:
        limit = RateLimit(per_second=2.0, burst=3)
        for _ in range(3):
            assert limit.admit(work(caller="ann"), view()) == inf
        with pytest.raises(RateLimited) as refusal:
            limit.admit(work(caller="ann"), view())
        assert refusal.value.retry_after_s == pytest.approx(0.5)

    def test_who_returns_when_told_is_let_in(self) -> None:
        limit = RateLimit(per_second=2.0, burst=1)
        limit.admit(work(caller="ann"), view(now=100.0))
        with pytest.raises(RateLimited) as refusal:
            limit.admit(work(caller="ann"), view(now=100.1))
        again = 100.1 + (refusal.value.retry_after_s or 0.0)
        assert limit.admit(work(caller="ann"), view(now=again + 1e-9)) == inf

    def test_callers_do_not_share_an_allowance(self) -> None:
        limit = RateLimit(per_second=1.0, burst=1)
        limit.admit(work(caller="ann"), view())
        assert limit.admit(work(caller="bob"), view()) == inf

    def test_a_long_pause_saves_up_no_more_than_one_burst(self) -> None:
        limit = RateLimit(per_second=1.0, burst=2)
        limit.admit(work(), view(now=0.0))
        for _ in range(2):
            limit.admit(work(), view(now=1e6))
        with pytest.raises(RateLimited):
            limit.admit(work(), view(now=1e6))

    def test_it_forgets_the_callers_seen_longest_ago(self) -> None:
        limit = RateLimit(per_second=0.001, burst=1, callers_max=2)
        for caller in ("ann", "bob", "eve"):
            limit.admit(work(caller=caller), view())
        assert limit.admit(work(caller="ann"), view()) == inf
        with pytest.raises(RateLimited):
            limit.admit(work(caller="eve"), view())

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.floats(0.0, 2.0), min_size=1, max_size=60),
        st.sampled_from([0.5, 2.0, 10.0]),
        st.integers(1, 5),
    )
    def test_over_any_stretch_nobody_gets_more_than_rate_times_time_plus_burst(
        self, pauses: list[float], rate: float, burst: int
    ) -> None:
        limit, now, granted = RateLimit(rate, burst), 0.0, []
        for pause in pauses:
            now += pause
            try:
                limit.admit(work(), view(now=now))
                granted.append(now)
            except RateLimited:
                continue
        for i, first in enumerate(granted):
            for j in range(i, len(granted)):
                assert j - i + 1 <= burst + rate * (granted[j] - first) + 1e-6


class TestMemoryPressure:
    def test_new_work_is_refused_while_memory_is_short_and_taken_again_after(self) -> None:
        share = 0.99
        policy = MemoryPressurePolicy(0.9, every_s=0.1, read=lambda: share)
        with pytest.raises(MemoryPressure, match="99%"):
            policy.admit(work(), view(now=0.0))
        share = 0.5
        assert policy.admit(work(), view(now=0.2)) == inf

    def test_it_looks_no_more_often_than_it_was_told(self) -> None:
        looks = []
        policy = MemoryPressurePolicy(0.9, every_s=1.0, read=lambda: looks.append(1) or 0.1)
        for i in range(100):
            policy.admit(work(), view(now=i * 0.05))
        assert 4 <= len(looks) <= 6

    def test_the_share_of_this_machine_lies_between_nought_and_one(self) -> None:
        assert 0.0 <= memory_used_share() <= 1.0

    def test_a_groups_own_limit_counts_before_the_machines(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "memory.current").write_text("750\n")
        (tmp_path / "memory.max").write_text("1000\n")
        monkeypatch.setattr(memory_pressure, "CGROUP", tmp_path)
        assert memory_used_share() == 0.75

    def test_a_group_without_a_limit_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "memory.current").write_text("750\n")
        (tmp_path / "memory.max").write_text("max\n")
        monkeypatch.setattr(memory_pressure, "CGROUP", tmp_path)
        assert 0.0 < memory_used_share() < 1.0


class TestAllOf:
    def test_no_policies_let_everybody_in(self) -> None:
        assert AllOf().admit(work(), view()) == inf

    def test_the_earliest_latest_start_counts(self) -> None:
        both = AllOf([QueueTimeoutPolicy(15.0), DeadlineFeasible()])
        assert both.admit(work(deadline=104.0), view()) == 103.0
        assert both.admit(work(deadline=400.0), view()) == 115.0

    def test_every_policy_hears_of_every_end(self) -> None:
        heard: list[str] = []

        class Listening(WaitingRoom):
            def observe(self, settled: Settled) -> None:
                heard.append(settled.outcome)

        AllOf([Listening(1), Listening(2)]).observe(Settled("l", "d", "done", 0.0, 1.0, 1))
        assert heard == ["done", "done"]

    @settings(max_examples=40, deadline=None)
    @given(
        waiting=st.integers(0, 3),
        free=st.integers(0, 1),
        deadline=st.one_of(st.just(inf), st.floats(100.0, 106.0)),
        start_in_s=st.floats(0.0, 3.0),
        share=st.sampled_from([0.5, 0.99]),
        asks=st.integers(1, 3),
    )
    def test_the_verdict_does_not_depend_on_the_order_of_policies(
        self,
        waiting: int,
        free: int,
        deadline: float,
        start_in_s: float,
        share: float,
        asks: int,
    ) -> None:
        picture = view(waiting=waiting, free=free, start_in_s=start_in_s)

        def policies() -> list[Policy]:
            return [
                WaitingRoom(2),
                QueueTimeoutPolicy(2.0),
                DeadlineFeasible(1.1),
                RateLimit(1.0, 2),
                MemoryPressurePolicy(0.9, read=lambda: share),
            ]

        verdicts = set()
        for order in permutations(range(5)):
            made = policies()
            admission = AllOf([made[i] for i in order])
            verdict: list[tuple[object, ...]] = []
            for _ in range(asks):
                try:
                    verdict.append(("in", admission.admit(work(deadline=deadline), picture)))
                except Rejected as refusal:
                    verdict.append((refusal.code, str(refusal), refusal.retry_after_s))
            verdicts.add(tuple(verdict))
        assert len(verdicts) == 1


def test_what_is_foreseen_to_be_late_is_refused_as_at_the_door_and_nothing_is_counted() -> None:
    rate = RateLimit(per_second=1.0, burst=1)
    both = AllOf([DeadlineFeasible(), rate])
    for _ in range(3):
        both.foresee(work(deadline=105.0), view(service_s=1.5))
    with pytest.raises(Infeasible):
        both.foresee(work(deadline=100.5), view(service_s=1.5))
    both.foresee(work(deadline=100.5), view(service_s=1.5), doubt_s=1.1)
    both.admit(work(deadline=105.0), view(service_s=1.5))
