"""Those who are refused and come back when told: a closed loop of doors and obedient callers."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import pytest

from tailrace.cache.memory import MemoryCache
from tailrace.core.admission import AllOf
from tailrace.core.batch import BatchRule
from tailrace.core.errors import QueueTimeout, Rejected
from tailrace.core.estimate import ServiceTime
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.policies.deadline_feasible import DeadlineFeasible
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.waiting_room import WaitingRoom
from tailrace.serve.doors import Door, Pipeline
from tailrace.simulate.virtual import VirtualLoop, run_virtual
from tailrace.wire.headers import RETRY_AFTER, RETRY_AFTER_MS, retry_after

SEATS = 4
SERVICES = (0.05, 0.12, 0.3, 1.0, 3.0)
Back = Callable[[dict[str, str]], float]
HEADERS: dict[str, Back] = {
    "retry-after": lambda headers: float(headers[RETRY_AFTER]),
    "retry-after-ms": lambda headers: float(headers[RETRY_AFTER_MS]) / 1000,
}


@dataclass
class Tally:
    """What became of the callers."""

    returned: int = 0
    served_on_first_return: int = 0
    served: int = 0
    gave_up: int = 0
    told: list[dict[str, str]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


class Box:
    """A limited door over a lane whose model takes `seconds`, give or take `jitter`."""

    def __init__(
        self, clock: VirtualLoop, seconds: float, *, jitter: float = 0.0, timeout_s: float = 15.0
    ) -> None:
        self.clock, self.seconds, self.jitter = clock, seconds, jitter
        self.dice = random.Random(7)
        self.lane = Lane(
            "review",
            self.run,
            clock=clock,
            service=ServiceTime(seconds),
            batch=BatchRule(8, window_s=0.025),
        )
        policies = [WaitingRoom(SEATS), QueueTimeoutPolicy(timeout_s), DeadlineFeasible()]
        self.door = Door("limited", self.lane, AllOf(policies), SEATS)
        self.pipeline = Pipeline(MemoryCache(0), clock)

    async def run(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        take = self.seconds * (1 + self.jitter * self.dice.uniform(-1, 1))
        run.mark("tokenize")
        await asyncio.sleep(take)
        run.mark("infer")
        return list(payloads)

    async def visit(self) -> dict[str, str] | None:
        """One request; the headers of the refusal, or None when served."""
        work = Work("x", Stamps(self.clock.now()), door="limited")
        work.stamps.close("admit", self.clock.now())
        try:
            await self.pipeline.admit(self.door, work)
        except (Rejected, QueueTimeout) as error:
            back_s = self.door.refuse(error, self.lane.view())
            assert back_s is not None
            return retry_after(back_s[0], back_s[1] * 1000)
        return None

    async def caller(self, tally: Tally, back: Back, tries: int = 5) -> None:
        for attempt in range(tries):
            began = self.clock.now()
            headers = await self.visit()
            tally.returned += attempt == 1
            if headers is None:
                tally.served += 1
                tally.served_on_first_return += attempt == 1
                tally.waits.append(self.clock.now() - began)
                return
            tally.told.append(headers)
            # The way to the caller and back again is not free, and never the same.
            await asyncio.sleep(back(headers) + self.dice.uniform(0.0005, 0.003))
        tally.gave_up += 1


def crowd_of(refused: int) -> int:
    """How many must come at once for so many to be refused."""
    return refused + SEATS + 1


@pytest.mark.parametrize("header", list(HEADERS))
@pytest.mark.parametrize("seconds", SERVICES)
@pytest.mark.parametrize("refused", [7, 12, 20, 40])
def test_who_obeys_retry_after_is_served_on_the_first_return(
    refused: int, seconds: float, header: str
) -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds), Tally()
        await asyncio.gather(
            *(box.caller(tally, HEADERS[header]) for _ in range(crowd_of(refused)))
        )
        return tally

    tally = run_virtual(main)
    assert tally.returned == refused
    assert tally.served_on_first_return >= 0.9 * refused
    assert tally.gave_up == 0


@pytest.mark.parametrize("header", list(HEADERS))
@pytest.mark.parametrize("seconds", SERVICES)
def test_the_promise_holds_when_the_model_is_not_quite_regular(seconds: float, header: str) -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds, jitter=0.15), Tally()
        await asyncio.gather(*(box.caller(tally, HEADERS[header]) for _ in range(25)))
        return tally

    tally = run_virtual(main)
    assert tally.served_on_first_return >= 0.9 * tally.returned


@pytest.mark.parametrize("seconds", SERVICES)
def test_most_are_served_on_return_even_while_four_times_too_many_newcomers_come(
    seconds: float,
) -> None:
    """Newcomers may take the seat that a return was planned for: no promise of 90 % here."""

    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds), Tally()

        async def late(i: int) -> None:
            await asyncio.sleep(i * seconds / 4)
            await box.caller(tally, HEADERS["retry-after"])

        await asyncio.gather(*(late(i) for i in range(40)))
        return tally

    tally = run_virtual(main)
    assert tally.returned >= 5
    assert tally.served_on_first_return >= 0.7 * tally.returned


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0])
def test_two_crowds_one_after_the_other_share_the_returns(seconds: float) -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds), Tally()

        async def wave(at: float) -> None:
            await asyncio.sleep(at)
            await asyncio.gather(*(box.caller(tally, HEADERS["retry-after"]) for _ in range(12)))

        await asyncio.gather(wave(0.0), wave(1.5))
        return tally

    tally = run_virtual(main)
    assert tally.served_on_first_return >= 0.8 * tally.returned
    assert tally.gave_up == 0


@pytest.mark.parametrize("seconds", SERVICES)
def test_returns_are_spread_over_no_more_time_than_the_work_needs_twice(seconds: float) -> None:
    """Spreading must not become an excuse: the last is told to come within twice the drain time."""

    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds), Tally()
        await asyncio.gather(*(box.caller(tally, HEADERS["retry-after-ms"]) for _ in range(25)))
        return tally

    latest_ms = max(int(headers[RETRY_AFTER_MS]) for headers in run_virtual(main).told)
    assert latest_ms / 1000 <= 2 * 25 * seconds + 0.1


def test_whole_seconds_are_whole_and_at_least_one_and_milliseconds_never_later() -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, 0.12), Tally()
        await asyncio.gather(*(box.caller(tally, HEADERS["retry-after"]) for _ in range(40)))
        return tally

    for headers in run_virtual(main).told:
        assert headers[RETRY_AFTER].isdigit()
        assert int(headers[RETRY_AFTER]) >= 1
        assert 1 <= int(headers[RETRY_AFTER_MS]) <= 1000 * int(headers[RETRY_AFTER])


@pytest.mark.parametrize("seconds", SERVICES)
def test_nobody_who_was_admitted_waits_longer_than_the_seats_ahead(seconds: float) -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, seconds), Tally()
        await asyncio.gather(
            *(box.caller(tally, HEADERS["retry-after-ms"]) for _ in range(40)),
        )
        return tally

    tally = run_virtual(main)
    assert max(tally.waits) <= (SEATS + 1) * seconds * 1.1


def test_those_who_waited_too_long_are_not_all_sent_to_the_same_moment() -> None:
    async def main(clock: VirtualLoop) -> Tally:
        box, tally = Box(clock, 5.0, timeout_s=2.0), Tally()
        await asyncio.gather(*(box.caller(tally, HEADERS["retry-after"], 1) for _ in range(5)))
        return tally

    told = [headers[RETRY_AFTER] for headers in run_virtual(main).told]
    assert len(told) == 4
    assert len(set(told)) == 4


def test_a_virtual_hour_of_overload_stays_bounded_and_the_model_never_idles() -> None:
    """Twice as many new callers as the model can serve, each giving up after a few returns."""

    async def main(clock: VirtualLoop) -> tuple[Tally, int, float]:
        box, tally = Box(clock, 2.0), Tally()
        busiest, dice, tasks = 0, random.Random(3), set()
        while clock.now() < 3600:
            await asyncio.sleep(dice.expovariate(1.0))
            task = asyncio.create_task(box.caller(tally, HEADERS["retry-after"], 2))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            busiest = max(busiest, box.lane.waiting)
        worst = max(float(headers[RETRY_AFTER]) for headers in tally.told)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await box.lane.drain()
        return tally, busiest, worst

    tally, busiest, worst = run_virtual(main)
    assert busiest <= SEATS
    assert max(tally.waits) <= (SEATS + 1) * 2.0 * 1.1
    assert tally.served >= 0.95 * 3600 / 2.0
    assert worst <= 3600


def test_the_door_says_when_the_deadline_of_infeasible_work_could_be_met() -> None:
    async def main(clock: VirtualLoop) -> tuple[float, float]:
        box = Box(clock, 1.0)
        ahead = [asyncio.create_task(box.visit()) for _ in range(3)]
        await asyncio.sleep(0)
        work = Work("x", Stamps(clock.now()), deadline=clock.now() + 1.5)
        with pytest.raises(Rejected) as refusal:
            await box.pipeline.admit(box.door, work)
        back_s = box.door.refuse(refusal.value, box.lane.view())
        assert back_s is not None
        await asyncio.sleep(back_s[1] + 0.05)
        again = Work("x", Stamps(clock.now()), deadline=clock.now() + 1.5)
        await box.pipeline.admit(box.door, again)
        await asyncio.gather(*ahead)
        return back_s[1], again.stamps.total

    back_s, took = run_virtual(main)
    assert back_s == pytest.approx(2.5, abs=0.01)
    assert took <= 1.5


@pytest.mark.parametrize("late", [False, True])
def test_deadline_feasible_refuses_what_would_be_late_and_lets_in_what_is_in_time(
    late: bool,
) -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        box, ends = Box(clock, 1.0), []

        async def call(deadline_s: float) -> None:
            work = Work("x", Stamps(clock.now()), deadline=clock.now() + deadline_s)
            try:
                await box.pipeline.admit(box.door, work)
                ends.append("late" if work.stamps.total > deadline_s else "in time")
            except Rejected as refusal:
                ends.append(refusal.code)

        shift = -0.2 if late else 0.2
        await asyncio.gather(*(call(place + 1 + shift) for place in range(4)))
        return ends

    ends = run_virtual(main)
    if late:
        assert ends[0] == "deadline-infeasible"
        assert "late" not in ends
    else:
        assert ends == ["in time"] * 4


def test_whole_seconds_are_rounded_up_never_down() -> None:
    for seconds in (0.0, 0.2, 1.0, 1.0001, 7.5):
        assert int(retry_after(seconds)[RETRY_AFTER]) == max(1, ceil(seconds))
