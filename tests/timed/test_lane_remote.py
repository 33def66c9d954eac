"""The lane in front of a model elsewhere: pauses, runs that are given up, failures of a whole run."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.core.batch import BatchRule
from tailrace.core.errors import ModelBusy, ModelError, ModelTimeout, QueueTimeout
from tailrace.core.events import Events, RunFinished
from tailrace.core.lane import Lane
from tailrace.core.work import StagedRun, Stamps, Work
from tailrace.policies.upstream_pause import UpstreamPause, UpstreamPaused
from tailrace.simulate.virtual import VirtualLoop, run_virtual


class Far:
    """A model elsewhere that takes a second, and does what is scripted first."""

    def __init__(self, *script: Exception) -> None:
        self.script = list(script)
        self.runs: list[list[Any]] = []
        self.cancelled = 0

    async def __call__(self, batch: Sequence[Any], run: StagedRun) -> Sequence[Any]:
        self.runs.append(list(batch))
        run.begin("first-byte")
        try:
            await asyncio.sleep(1.0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        run.mark("first-byte")
        if self.script:
            raise self.script.pop(0)
        return list(batch)


def work(clock: VirtualLoop, payload: str = "x", **more: Any) -> Work:
    return Work(payload, Stamps(clock.now()), **more)


def test_a_pause_holds_back_what_waits_and_what_comes():
    async def story(clock: VirtualLoop) -> None:
        far = Far(ModelBusy(pause_s=5.0))
        lane = Lane("far", far, clock=clock, abandons=True)
        first, second = lane.submit(work(clock)), lane.submit(work(clock))
        with pytest.raises(ModelBusy):
            await first
        assert clock.now() == 1.0
        view = lane.view()
        assert (view.paused_s, view.free) == (5.0, 0)
        assert view.start_in_s >= 5.0
        with pytest.raises(UpstreamPaused) as refused:
            UpstreamPause(1.0).admit(work(clock), view)
        assert refused.value.back_s == (5.0, 5.0)
        assert UpstreamPause(9.0).admit(work(clock), view)
        await second
        assert clock.now() == pytest.approx(7.0)
        assert lane.view().paused_s == 0.0

    run_virtual(story)


def test_who_cannot_wait_for_the_end_of_a_pause_is_told_in_time():
    async def story(clock: VirtualLoop) -> None:
        lane = Lane("far", Far(), clock=clock)
        lane.pause(10.0)
        lane.pause(2.0)
        with pytest.raises(QueueTimeout):
            await lane.do(work(clock), latest_start=3.0)
        assert clock.now() == 3.0

    run_virtual(story)


@pytest.mark.parametrize("abandons", [True, False])
def test_a_run_nobody_waits_for_is_cancelled_where_that_is_of_use(abandons):
    async def story(clock: VirtualLoop) -> tuple[int, float]:
        far = Far()
        lane = Lane("far", far, clock=clock, abandons=abandons)
        first, next_one = work(clock), work(clock)
        leaving, staying = lane.submit(first), lane.submit(next_one)
        await asyncio.sleep(0.25)
        leaving.cancel()
        await staying
        assert first.stamps.parts()["first-byte"] == pytest.approx(0.25)
        return far.cancelled, clock.now()

    assert run_virtual(story) == ((1, 1.25) if abandons else (0, 2.0))


def test_a_shared_run_goes_on_while_anybody_waits_for_it():
    async def story(clock: VirtualLoop) -> int:
        far = Far()
        lane = Lane("far", far, clock=clock, batch=BatchRule(2, window_s=0.01), abandons=True)
        left, right = (lane.submit(work(clock, batch_key="k")) for _ in range(2))
        await asyncio.sleep(0.5)
        left.cancel()
        assert await right == "x"
        assert len(far.runs) == 1
        return far.cancelled

    assert run_virtual(story) == 0


def test_a_deadline_that_passes_gives_the_run_up():
    async def story(clock: VirtualLoop) -> int:
        far = Far()
        lane = Lane("far", far, clock=clock, abandons=True)
        with pytest.raises(ModelTimeout):
            await lane.do(work(clock, deadline=0.5))
        await asyncio.sleep(0)
        assert lane.running == 0
        return far.cancelled

    assert run_virtual(story) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_failure_of_the_whole_run_is_not_looked_for_in_its_items(whole):
    failure = ModelError("elsewhere")
    failure.whole = whole

    async def story(clock: VirtualLoop) -> int:
        far = Far(failure)
        lane = Lane("far", far, clock=clock, batch=BatchRule(4, window_s=0.01))
        futures = [lane.submit(work(clock, batch_key="k")) for _ in range(4)]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert answers == ([failure] * 4 if whole else ["x"] * 4)
        return len(far.runs)

    assert run_virtual(story) == (1 if whole else 3)


def test_the_end_of_a_run_says_whether_its_time_can_be_learned_from():
    async def story(clock: VirtualLoop) -> list[tuple[bool, bool, int]]:
        seen: list[RunFinished] = []
        events = Events()
        events.subscribe(lambda e: seen.append(e) if isinstance(e, RunFinished) else None)
        far = Far(ModelBusy(pause_s=0.0))
        lane = Lane("far", far, clock=clock, slots=2, events=events, abandons=True)
        with pytest.raises(ModelBusy):
            await lane.do(work(clock))
        await asyncio.gather(*(lane.submit(work(clock)) for _ in range(2)))
        leaving = lane.submit(work(clock))
        await asyncio.sleep(0.1)
        leaving.cancel()
        await asyncio.sleep(0.1)
        return [(event.clean, event.overload, event.running) for event in seen]

    assert run_virtual(story) == [
        (False, True, 1),
        (True, False, 2),
        (True, False, 1),
        (False, False, 1),
    ]
