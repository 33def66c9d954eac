"""The next run lies ready while the model works: begun without the lane, and still the lane's to change."""

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from tailrace.core.batch import BatchRule
from tailrace.core.errors import QueueTimeout
from tailrace.core.lane import Lane
from tailrace.core.seats import Batch, Seat
from tailrace.core.slots import Slots
from tailrace.core.work import ReadyRun, StagedRun, Stamps, Work
from tailrace.simulate.virtual import VirtualLoop, run_virtual

LAG_S = 0.1
"""What passes from the end of a run until the lane knows of it."""


class Thread:
    """A model on one thread: a second a run; who ends one takes what lies ready."""

    def __init__(self, clock: VirtualLoop) -> None:
        self.clock = clock
        self.runs: list[tuple[float, list[Any]]] = []
        self._ready: tuple[Sequence[Any], ReadyRun, asyncio.Future[Sequence[Any]]] | None = None
        self._taken: set[asyncio.Task[None]] = set()

    async def __call__(self, payloads: Sequence[Any], run: StagedRun) -> Sequence[Any]:
        self.runs.append((round(self.clock.now(), 6), list(payloads)))
        await asyncio.sleep(1.0)
        run.mark("infer")
        if self._ready is not None:
            (more, next_run, future), self._ready = self._ready, None
            if next_run.claim():
                task = asyncio.create_task(self._take(more, next_run, future))
                self._taken.add(task)
                task.add_done_callback(self._taken.discard)
        await asyncio.sleep(LAG_S)
        if "poison" in payloads:
            raise ValueError("poison")
        return list(payloads)

    async def _take(
        self, payloads: Sequence[Any], run: ReadyRun, future: asyncio.Future[Sequence[Any]]
    ) -> None:
        try:
            future.set_result(await self(payloads, run))
        except ValueError as error:
            future.set_exception(error)

    def lay(self, payloads: Sequence[Any], run: ReadyRun) -> asyncio.Future[Sequence[Any]]:
        future: asyncio.Future[Sequence[Any]] = self.clock.create_future()
        self._ready = payloads, run, future
        return future

    def clear(self) -> None:
        self._ready = None


def lane_of(clock: VirtualLoop, **more: Any) -> tuple[Lane, Thread]:
    model = Thread(clock)
    return Lane("decked", model, deck=model, clock=clock, **more), model


def ask(lane: Lane, payload: str, latest: float = inf, **more: Any) -> asyncio.Future[Any]:
    return lane.submit(Work(payload, Stamps(lane._clock.now()), **more), latest)


def test_the_model_goes_from_run_to_run_without_waiting_for_the_lane() -> None:
    async def main(clock: VirtualLoop) -> tuple[Thread, list[dict[str, float]]]:
        lane, model = lane_of(clock)
        works = [Work(name, Stamps(0.0)) for name in "abc"]
        assert await asyncio.gather(*(lane.submit(work) for work in works)) == ["a", "b", "c"]
        await lane.drain()
        return model, [work.stamps.parts() for work in works]

    model, parts = run_virtual(main)
    assert model.runs == [(0, ["a"]), (1, ["b"]), (2, ["c"])]
    assert [round(seen["wait"], 6) for seen in parts] == [0, 1, 2]
    assert [round(seen["infer"], 6) for seen in parts] == [1, 1, 1]
    assert [round(seen["handover"], 6) for seen in parts] == [LAG_S] * 3


def test_who_leaves_or_is_out_of_time_before_the_model_takes_it_is_not_run() -> None:
    async def main(clock: VirtualLoop) -> Thread:
        lane, model = lane_of(clock)
        first = ask(lane, "first")
        leaving, late, last = ask(lane, "leaving"), ask(lane, "late", 0.6), ask(lane, "last")
        await asyncio.sleep(0.5)
        leaving.cancel()
        with pytest.raises(QueueTimeout):
            await late
        assert clock.now() == pytest.approx(0.6)
        assert lane.waiting == 1
        assert await asyncio.gather(first, last) == ["first", "last"]
        return model

    assert run_virtual(main).runs == [(0, ["first"]), (1, ["last"])]


def test_a_newcomer_joins_what_lies_ready_and_who_is_more_urgent_goes_first() -> None:
    async def main(clock: VirtualLoop) -> Thread:
        lane, model = lane_of(clock, batch=BatchRule(items_max=2))
        asked = [ask(lane, "a", batch_key="k"), ask(lane, "bulk", batch_key="k", yields=9.0)]
        await asyncio.sleep(0.2)
        asked.append(ask(lane, "b", batch_key="k"))
        await asyncio.sleep(0.2)
        asked.append(ask(lane, "c", batch_key="k"))
        await asyncio.gather(*asked)
        return model

    assert run_virtual(main).runs == [(0, ["a"]), (1, ["b", "c"]), (2, ["bulk"])]


def test_another_lane_that_waits_for_a_slot_gets_the_next_one() -> None:
    async def main(clock: VirtualLoop) -> list[tuple[float, str]]:
        budget = Slots(1)
        (one, first), (two, second) = (lane_of(clock, budget=budget) for _ in range(2))
        asked = [ask(one, "one 1"), ask(one, "one 2"), ask(two, "two"), ask(one, "one 3")]
        await asyncio.gather(*asked)
        assert budget.taken == 0
        return sorted((at, run[0]) for model in (first, second) for at, run in model.runs)

    began = run_virtual(main)
    assert [name for _, name in began] == ["one 1", "two", "one 2", "one 3"]


def test_who_leaves_just_after_the_model_took_it_keeps_the_slot_until_the_run_ends() -> None:
    async def main(clock: VirtualLoop) -> tuple[Thread, float]:
        lane, model = lane_of(clock)
        first, leaving = ask(lane, "first"), ask(lane, "leaving")
        await asyncio.sleep(1.05)  # taken at 1, and the lane does not know yet
        leaving.cancel()
        await asyncio.sleep(0)
        assert lane.line()[-1][1], "it is on the model"
        last = ask(lane, "last")
        await asyncio.gather(first, last)
        await lane.drain()
        return model, clock.now()

    model, _ = run_virtual(main)
    assert model.runs == [(0, ["first"]), (1, ["leaving"]), (2, ["last"])]


def test_a_pause_takes_back_what_lies_ready() -> None:
    async def main(clock: VirtualLoop) -> Thread:
        lane, model = lane_of(clock)
        asked = [ask(lane, "a"), ask(lane, "b")]
        lane.pause(5.0)
        await asyncio.gather(*asked)
        return model

    assert run_virtual(main).runs == [(0, ["a"]), (5, ["b"])]


def test_a_bad_item_in_a_run_from_the_deck_costs_only_itself() -> None:
    async def main(clock: VirtualLoop) -> list[Any]:
        lane, _ = lane_of(clock, batch=BatchRule(items_max=3))
        asked = [ask(lane, name, batch_key="k") for name in ("a", "b", "poison", "c")]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        await lane.drain()
        return ended

    a, b, poison, c = run_virtual(main)
    assert (a, b, c) == ("a", "b", "c")
    assert poison.code == "model-failed"


def test_of_taking_and_taking_back_only_one_wins_and_nobody_is_begun_late() -> None:
    async def main(clock: VirtualLoop) -> None:
        def ready(latest: float) -> Batch:
            batch = Batch(clock, 0.0)
            batch.members.append(Seat(Work("x", Stamps(0.0)), clock.create_future(), latest))
            batch.lay()
            return batch

        batch = ready(inf)
        assert batch.claim()
        assert not batch.recall()
        batch = ready(inf)
        assert batch.recall()
        assert not batch.claim()
        late = ready(0.5)
        await asyncio.sleep(0.6)
        assert not late.claim()
        assert late.recall()

    run_virtual(main)
