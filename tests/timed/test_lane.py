"""The lane on a virtual clock."""

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from tailrace.core.admission import AllOf
from tailrace.core.batch import BatchRule
from tailrace.core.errors import Draining, ModelError, ModelTimeout, QueueTimeout, Rejected
from tailrace.core.estimate import ServiceTime
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.waiting_room import WaitingRoom
from tailrace.simulate.virtual import VirtualLoop, run_virtual


class Model:
    """One virtual second an item, in steps of 0.1 s between which it looks who still waits."""

    def __init__(self, clock: VirtualLoop, *, per_item_s: float = 1.0) -> None:
        self.clock, self.per_item_s = clock, per_item_s
        self.runs: list[list[Any]] = []

    async def __call__(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        self.runs.append(list(payloads))
        run.mark("tokenize")
        for _ in range(round(10 * self.per_item_s * len(payloads))):
            if not any(run.wanted(i) for i in range(len(payloads))):
                break
            await asyncio.sleep(0.1)
        run.mark("infer")
        if "poison" in payloads:
            raise ValueError("bad item")
        return [f"answer to {payload}" for payload in payloads]


def work(clock: VirtualLoop, payload: Any = "x", **more: Any) -> Work:
    return Work(payload, Stamps(clock.now()), **more)


async def outcome(lane: Lane, item: Work, admission: AllOf | None = None) -> tuple[str, float]:
    start = item.stamps.start
    try:
        latest = admission.admit(item, lane.view(item)) if admission else inf
        await lane.do(item, latest)
    except (Rejected, QueueTimeout, ModelError) as error:
        return error.code, lane._clock.now() - start
    return "done", lane._clock.now() - start


def seed_lane(clock: VirtualLoop, model: Model, **more: Any) -> Lane:
    return Lane("review", model, clock=clock, service=ServiceTime(1.0), **more)


def test_twelve_at_once_with_four_seats_answers_five_and_refuses_seven_at_once() -> None:
    async def main(clock: VirtualLoop) -> list[tuple[str, float]]:
        lane, door = seed_lane(clock, Model(clock)), AllOf([WaitingRoom(4)])
        return await asyncio.gather(*(outcome(lane, work(clock), door) for _ in range(12)))

    ends = run_virtual(main)
    assert [kind for kind, _ in ends].count("done") == 5
    assert [after for kind, after in ends if kind == "lane-full"] == [0.0] * 7
    assert max(after for _, after in ends) == pytest.approx(5.0)


def test_a_caller_is_told_at_the_latest_start_and_not_when_a_worker_looks() -> None:
    async def main(clock: VirtualLoop) -> list[tuple[str, float]]:
        lane, door = (
            seed_lane(clock, Model(clock, per_item_s=4.0)),
            AllOf([QueueTimeoutPolicy(2.5)]),
        )
        return await asyncio.gather(*(outcome(lane, work(clock), door) for _ in range(3)))

    assert run_virtual(main) == [
        ("done", pytest.approx(4.0)),
        ("queue-timeout", pytest.approx(2.5)),
        ("queue-timeout", pytest.approx(2.5)),
    ]


def test_work_that_shares_a_key_runs_together_and_its_neighbours_run_alone() -> None:
    async def main(clock: VirtualLoop) -> list[list[str]]:
        model = Model(clock, per_item_s=0.1)
        lane = seed_lane(clock, model, batch=BatchRule(items_max=3, window_s=0.025))
        keys = ["b", None, "b", "b", "b", None]
        await asyncio.gather(
            *(lane.do(work(clock, str(i), batch_key=key)) for i, key in enumerate(keys))
        )
        return model.runs

    assert run_virtual(main) == [["0", "2", "3"], ["1"], ["4"], ["5"]]


def test_an_idle_lane_holds_a_batch_open_for_its_window_and_stamps_its_opening() -> None:
    async def main(
        clock: VirtualLoop,
    ) -> tuple[list[list[str]], dict[str, float], dict[str, float]]:
        model = Model(clock, per_item_s=0.1)
        lane = seed_lane(clock, model, batch=BatchRule(items_max=8, window_s=0.025))
        first, second = work(clock, "0", batch_key="b"), work(clock, "1", batch_key="b")
        task = asyncio.create_task(lane.do(first))
        await asyncio.sleep(0.010)
        second.stamps.close("admit", clock.now())
        await lane.do(second)
        await task
        return model.runs, first.stamps.parts(), second.stamps.parts()

    runs, first, second = run_virtual(main)
    assert runs == [["0", "1"]]
    assert first["wait"] == 0.0
    assert first["batch"] == pytest.approx(0.025)
    assert second["batch"] == pytest.approx(0.015)


def test_work_that_waited_longer_than_the_window_starts_as_soon_as_the_model_is_free() -> None:
    async def main(clock: VirtualLoop) -> dict[str, float]:
        lane = seed_lane(clock, Model(clock), batch=BatchRule(items_max=8, window_s=0.025))
        late = work(clock, batch_key="b")
        await asyncio.gather(lane.do(work(clock)), lane.do(late))
        return late.stamps.parts()

    parts = run_virtual(main)
    assert parts["wait"] == pytest.approx(1.0)
    assert parts["batch"] == 0.0


def test_forty_who_hang_up_cost_the_next_caller_nothing_but_the_run_in_progress() -> None:
    async def main(clock: VirtualLoop) -> tuple[float, int]:
        model = Model(clock)
        lane = seed_lane(clock, model)
        leaving = [asyncio.create_task(lane.do(work(clock))) for _ in range(40)]
        await asyncio.sleep(0.35)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        assert lane.waiting == 0
        _, took = await outcome(lane, work(clock))
        return took, len(model.runs)

    took, runs = run_virtual(main)
    assert took == pytest.approx(1.1, abs=0.06)
    assert runs == 2


def test_a_member_who_leaves_a_gathering_batch_takes_the_empty_batch_along() -> None:
    async def main(clock: VirtualLoop) -> tuple[int, int, int]:
        model = Model(clock)
        lane = seed_lane(clock, model, batch=BatchRule(items_max=8, window_s=5.0))
        task = asyncio.create_task(lane.do(work(clock, batch_key="b")))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return lane.running, lane.waiting, len(model.runs)

    assert run_virtual(main) == (0, 0, 0)


@pytest.mark.parametrize("place", range(8))
def test_a_bad_item_fails_alone_wherever_it_stands_in_the_batch(place: int) -> None:
    async def main(clock: VirtualLoop) -> list[Any]:
        lane = seed_lane(
            clock, Model(clock, per_item_s=0.1), batch=BatchRule(items_max=8, window_s=1.0)
        )
        payloads = ["good"] * 8
        payloads[place] = "poison"
        tasks = (lane.do(work(clock, p, batch_key="b")) for p in payloads)
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = run_virtual(main)
    assert isinstance(answers.pop(place), ModelError)
    assert answers == ["answer to good"] * 7


def test_the_lane_lives_on_after_the_model_failed() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        lane = seed_lane(clock, Model(clock))
        return [(await outcome(lane, work(clock, p)))[0] for p in ("poison", "good")]

    assert run_virtual(main) == ["model-failed", "done"]


def test_a_deadline_during_the_run_is_answered_at_the_deadline_and_stops_the_model() -> None:
    async def main(clock: VirtualLoop) -> tuple[tuple[str, float], tuple[str, float]]:
        lane = seed_lane(clock, Model(clock, per_item_s=5.0))
        late = await outcome(lane, work(clock, deadline=1.25))
        return late, await outcome(lane, work(clock))

    late, following = run_virtual(main)
    assert late == ("model-timeout", pytest.approx(1.25))
    assert following[1] == pytest.approx(5.1, abs=0.06)


def test_a_model_that_hangs_is_given_up_after_the_longest_run_allowed() -> None:
    async def main(clock: VirtualLoop) -> tuple[str, float]:
        lane = seed_lane(clock, Model(clock, per_item_s=500.0), run_max_s=30.0)
        return await outcome(lane, work(clock))

    assert run_virtual(main) == ("model-timeout", pytest.approx(30.0))


def test_draining_refuses_the_new_and_finishes_the_old() -> None:
    async def main(clock: VirtualLoop) -> tuple[list[tuple[str, float]], str, float]:
        lane = seed_lane(clock, Model(clock))
        inside = [asyncio.create_task(outcome(lane, work(clock))) for _ in range(3)]
        await asyncio.sleep(0.01)
        drained = asyncio.create_task(lane.drain())
        await asyncio.sleep(0.01)
        refused, _ = await outcome(lane, work(clock))
        await drained
        return await asyncio.gather(*inside), refused, clock.now()

    inside, refused, at = run_virtual(main)
    assert [kind for kind, _ in inside] == ["done"] * 3
    assert refused == Draining.code
    assert at == pytest.approx(3.0, abs=0.1)


def test_draining_gives_up_what_is_left_when_the_grace_is_over() -> None:
    async def main(clock: VirtualLoop) -> list[tuple[str, float]]:
        lane = seed_lane(clock, Model(clock))
        inside = [asyncio.create_task(lane.do(work(clock))) for _ in range(5)]
        await asyncio.sleep(0.01)
        await lane.drain(grace_s=2.5)
        return [type(end).__name__ for end in await asyncio.gather(*inside, return_exceptions=True)]

    assert run_virtual(main) == ["str", "str", "Draining", "Draining", "Draining"]


def test_a_model_that_answers_too_few_is_a_typed_failure() -> None:
    async def half(payloads: Sequence[Any], run: Run) -> list[Any]:
        return []

    async def main(clock: VirtualLoop) -> None:
        await Lane("short", half, clock=clock).do(work(clock))

    with pytest.raises(ModelError, match="0 answers to 1"):
        run_virtual(main)


def test_a_timeout_carries_its_own_class_and_code() -> None:
    assert ModelTimeout().code == "model-timeout"
    assert "deadline" in str(ModelTimeout())
