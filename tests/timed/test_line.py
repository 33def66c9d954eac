"""Fairness between callers, classes and lanes, on the virtual clock."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.core.batch import BatchRule
from tailrace.core.estimate import ServiceTime
from tailrace.core.lane import Lane
from tailrace.core.slots import Slots
from tailrace.core.work import Run, Stamps, Work
from tailrace.simulate.virtual import VirtualLoop, run_virtual


class Recorder:
    """One virtual second per unit of cost; notes the order in which work ran."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.running = self.most = 0

    async def __call__(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        self.order += payloads
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(1.0 * len(payloads))
        self.running -= 1
        return list(payloads)


def lane_of(clock: VirtualLoop, model: Recorder, **more: Any) -> Lane:
    return Lane("fair", model, clock=clock, service=ServiceTime(1.0), **more)


def work(clock: VirtualLoop, name: str, **more: Any) -> Work:
    return Work(name, Stamps(clock.now()), caller=name, **more)


def test_a_caller_beside_one_that_sends_twenty_times_more_gets_its_half() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        model = Recorder()
        lane = lane_of(clock, model)
        heavy = [lane.submit(work(clock, "heavy")) for _ in range(200)]
        light = [lane.submit(work(clock, "light")) for _ in range(10)]
        await asyncio.gather(*heavy, *light)
        return model.order

    assert Counter(run_virtual(main)[:21])["light"] == 10


def test_one_caller_alone_is_served_in_the_order_of_arrival() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        model = Recorder()
        lane = lane_of(clock, model)
        costs = [3.0, 1.0, 2.0, 5.0, 1.0]
        works = [
            Work(str(i), Stamps(clock.now()), caller="one", cost=cost)
            for i, cost in enumerate(costs)
        ]
        await asyncio.gather(*(lane.submit(item) for item in works))
        return model.order

    assert run_virtual(main) == ["0", "1", "2", "3", "4"]


def test_bulk_lets_interactive_work_pass_but_is_not_passed_for_ever() -> None:
    async def main(clock: VirtualLoop) -> tuple[int, int]:
        model = Recorder()
        lane = lane_of(clock, model)
        lane.submit(work(clock, "first"))
        lane.submit(work(clock, "bulk", yields=5.0))

        async def steady() -> None:
            for _ in range(40):
                lane.submit(work(clock, "interactive"))
                await asyncio.sleep(1.0)

        await steady()
        await lane.drain()
        place = model.order.index("bulk")
        return place, len(model.order)

    place, count = run_virtual(main)
    assert 5 <= place <= 9
    assert count == 42


def test_lanes_on_one_budget_never_run_more_than_its_slots_and_take_turns() -> None:
    async def main(clock: VirtualLoop) -> tuple[int, list[str]]:
        model, budget = Recorder(), Slots(2)
        lanes = [lane_of(clock, model, slots=2, budget=budget) for _ in range(3)]
        futures = [
            lane.submit(work(clock, str(i))) for i, lane in enumerate(lanes) for _ in range(4)
        ]
        await asyncio.gather(*futures)
        assert budget.taken == 0
        return model.most, model.order

    most, order = run_virtual(main)
    assert most == 2
    assert set(order[:6]) == {"0", "1", "2"}


def test_a_lane_that_was_woken_for_nothing_leaves_the_slot_to_the_next() -> None:
    async def main(clock: VirtualLoop) -> float:
        model, budget = Recorder(), Slots(1)
        first, empty, last = (lane_of(clock, model, budget=budget) for _ in range(3))
        running = first.submit(work(clock, "first"))
        leaving = empty.submit(work(clock, "leaves"))
        waiting = last.submit(work(clock, "last"))
        leaving.cancel()
        await asyncio.gather(running, waiting)
        return clock.now()

    assert run_virtual(main) == pytest.approx(2.0)


def test_padded_runs_take_company_of_like_length_within_the_budget() -> None:
    async def main(clock: VirtualLoop) -> list[list[float]]:
        runs: list[list[float]] = []

        async def model(payloads: Sequence[Any], run: Run) -> list[Any]:
            runs.append(list(payloads))
            await asyncio.sleep(1.0)
            return list(payloads)

        rule = BatchRule(items_max=32, cost_max=64.0, padded=True)
        lane = Lane("padded", model, clock=clock, batch=rule)
        costs = [10.0, 12.0, 60.0, 11.0, 13.0, 50.0, 12.0]
        futures = [
            lane.submit(Work(cost, Stamps(clock.now()), cost=cost, batch_key="e")) for cost in costs
        ]
        await asyncio.gather(*futures)
        return runs

    runs = run_virtual(main)
    assert all(max(run) * len(run) <= 64.0 for run in runs)
    assert [60.0] in runs
    assert len(runs) <= 5
