"""The adaptive limit on a virtual clock, through a real lane: it finds what the upstream can do."""

import asyncio
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import pytest

from tailrace.core.errors import ModelBusy
from tailrace.core.events import Events
from tailrace.core.lane import Lane
from tailrace.core.work import StagedRun, Stamps, Work
from tailrace.policies.adaptive import AdaptiveLimit, Ended
from tailrace.serve.adapting import Adapting
from tailrace.simulate.virtual import VirtualLoop, run_virtual


class Elsewhere:
    """An upstream that serves `capacity` at once at full speed; more share it, or are refused."""

    def __init__(self, clock: VirtualLoop, capacity: int, alone_s: float = 0.2) -> None:
        self.clock, self.capacity, self.alone_s = clock, capacity, alone_s
        self.refuses_beyond: int | None = None
        self.inside = self.done = self.refused = 0

    async def run(self, batch: Sequence[Any], run: StagedRun) -> Sequence[Any]:
        if self.refuses_beyond is not None and self.inside >= self.refuses_beyond:
            self.refused += 1
            await asyncio.sleep(0.001)
            raise ModelBusy(pause_s=0.0)
        self.inside += 1
        try:
            left = self.alone_s
            while left > 1e-9:
                step = min(left, self.alone_s / 4)
                await asyncio.sleep(step * max(1.0, self.inside / self.capacity))
                left -= step
        finally:
            self.inside -= 1
        self.done += 1
        return list(batch)


class Bench:
    """A lane that always has work, in front of such an upstream."""

    def __init__(
        self, clock: VirtualLoop, upstream: Elsewhere, limit: AdaptiveLimit, callers: int = 200
    ) -> None:
        self.clock, self.upstream, self.limit = clock, upstream, limit
        events = Events()
        self.lane = Lane("far", upstream.run, clock=clock, slots=limit.limit, events=events)
        events.subscribe(Adapting("far", self.lane, limit, clock))
        self._callers = [asyncio.ensure_future(self._call()) for _ in range(callers)]

    async def _call(self) -> None:
        while True:
            try:
                await self.lane.do(Work("x", Stamps(self.clock.now())))
            except ModelBusy:
                await asyncio.sleep(0.05)

    async def watch(self, seconds: float, every_s: float = 0.1) -> list[int]:
        """The lane's slots over a while."""
        seen = []
        for _ in range(round(seconds / every_s)):
            await asyncio.sleep(every_s)
            seen.append(self.lane.slots)
        return seen

    async def rate(self, seconds: float) -> float:
        """Answers a second over a while."""
        before = self.upstream.done
        await asyncio.sleep(seconds)
        return (self.upstream.done - before) / seconds

    def stop(self) -> None:
        for caller in self._callers:
            caller.cancel()


def bench(
    story: Callable[[Bench], Any],
    *,
    capacity: int,
    ceiling: int = 64,
    floor: int = 1,
    callers: int = 200,
) -> Any:
    async def main(clock: VirtualLoop) -> Any:
        upstream = Elsewhere(clock, capacity)
        made = Bench(clock, upstream, AdaptiveLimit(floor, ceiling), callers)
        try:
            return await story(made)
        finally:
            made.stop()

    return run_virtual(main)


@pytest.mark.parametrize("capacity", [1, 2, 4, 7, 16, 40])
def test_the_limit_finds_the_capacity_and_keeps_the_throughput(capacity):
    async def story(made: Bench) -> tuple[list[int], float]:
        await made.watch(40)
        return await made.watch(20), await made.rate(20)

    seen, rate = bench(story, capacity=capacity)
    assert capacity <= mean(seen) <= 1.35 * capacity + 2
    assert rate >= 0.95 * capacity / 0.2


@pytest.mark.parametrize("capacity", [3, 10, 25])
def test_the_limit_keeps_still_where_the_upstream_does(capacity):
    """Probes left out (half of the limit, one window in forty), within one of its mean."""

    async def story(made: Bench) -> list[int]:
        await made.watch(60)
        return await made.watch(100)

    seen = bench(story, capacity=capacity)
    usual = [slots for slots in seen if slots > 0.6 * max(seen)]
    assert len(usual) >= 0.9 * len(seen)
    assert max(usual) - min(usual) <= 2


def test_the_limit_falls_with_the_upstream_and_comes_back_with_it():
    async def story(made: Bench) -> list[float]:
        levels = []
        for capacity in (16, 4, 16):
            made.upstream.capacity = capacity
            await made.watch(60)
            levels.append(mean(await made.watch(20)))
        return levels

    before, worse, after = bench(story, capacity=16)
    assert worse <= 8
    assert after >= 15
    assert before >= 15


def test_an_upstream_that_became_slower_as_a_whole_is_not_taken_for_a_full_one():
    """Three times as slow for everybody: as many at once as before are right."""

    async def story(made: Bench) -> tuple[float, float]:
        await made.watch(60)
        made.upstream.alone_s *= 3
        await made.watch(120)
        return mean(await made.watch(30)), await made.rate(30)

    level, rate = bench(story, capacity=12)
    assert 11 <= level <= 18
    assert rate >= 0.9 * 12 / 0.6


def test_refusals_are_rare_once_the_limit_is_known():
    async def story(made: Bench) -> tuple[int, int, float]:
        made.upstream.refuses_beyond = 10
        await made.watch(60)
        refused, done = made.upstream.refused, made.upstream.done
        seen = await made.watch(120)
        return made.upstream.refused - refused, made.upstream.done - done, mean(seen)

    refused, done, level = bench(story, capacity=10)
    assert refused <= 0.01 * done
    assert level >= 7


def test_floor_and_ceiling_hold():
    async def story(made: Bench) -> list[int]:
        seen = await made.watch(60)
        made.upstream.capacity = 1
        return seen + await made.watch(60)

    seen = bench(story, capacity=1000, floor=3, ceiling=9)
    assert (min(seen), max(seen)) == (3, 9)


def test_a_lane_that_is_hardly_used_learns_no_limit_it_did_not_need():
    async def story(made: Bench) -> list[int]:
        return await made.watch(120)

    assert max(bench(story, capacity=50, callers=3)) <= 4


def test_a_run_that_began_under_another_limit_tells_nothing():
    limit = AdaptiveLimit(1, 8)
    for number in range(8):
        limit.observe(Ended(number, number + 1.0, 1))
    assert limit.limit == 2
    limit.observe(Ended(3.0, 9.0, 2, clean=False, overload=True))
    assert limit.limit == 2


@pytest.mark.parametrize(("floor", "ceiling"), [(0, 4), (5, 4)])
def test_bounds_that_cannot_be_are_refused(floor, ceiling):
    with pytest.raises(ValueError, match="floor"):
        AdaptiveLimit(floor, ceiling)


def test_more_slots_take_effect_at_once_and_fewer_as_runs_end():
    async def story(clock: VirtualLoop) -> list[int]:
        seen: list[int] = []

        async def run(batch: Sequence[Any], run: StagedRun) -> Sequence[Any]:
            await asyncio.sleep(1.0)
            return list(batch)

        lane = Lane("far", run, clock=clock, slots=1)
        works = [lane.submit(Work("x", Stamps(0.0))) for _ in range(8)]
        lane.slots = 4
        await asyncio.sleep(0.5)
        seen.append(lane.running)
        lane.slots = 1
        assert lane.view().free == 0
        assert len(lane.free_in_s()) == 1
        await asyncio.sleep(0.4)
        seen.append(lane.running)
        await asyncio.sleep(0.2)
        seen.append(lane.running)
        await asyncio.gather(*works)
        return seen

    assert run_virtual(story) == [4, 4, 1]
