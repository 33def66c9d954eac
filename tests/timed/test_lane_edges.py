"""The corners of the lane, on a virtual clock: where crowds, latecomers and failures meet."""

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from tailrace.core.batch import BatchRule
from tailrace.core.errors import ModelError, ModelTimeout, QueueTimeout
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Event, Events, RunFinished, Settled
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.simulate.virtual import VirtualLoop, run_virtual


def work(clock: VirtualLoop, payload: Any = "x", **more: Any) -> Work:
    return Work(payload, Stamps(clock.now()), **more)


class Steady:
    """Takes `seconds` a run, in tenths, and stops when nobody wants the answer."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds, self.runs = seconds, 0

    async def __call__(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        self.runs += 1
        run.mark("tokenize")
        for _ in range(10):
            if not any(run.wanted(i) for i in range(len(payloads))):
                break
            await asyncio.sleep(self.seconds / 10)
        run.mark("infer")
        if "poison" in payloads:
            raise ValueError("bad item")
        return [ValueError("bad answer") if p == "bad" else p for p in payloads]


def watched() -> tuple[Events, list[Event]]:
    events, seen = Events(), []
    events.subscribe(seen.append)
    return events, seen


def finished(seen: list[Event]) -> list[bool]:
    return [event.failed for event in seen if isinstance(event, RunFinished)]


def test_a_run_whose_caller_hung_up_is_not_a_failure_of_the_model() -> None:
    async def main(clock: VirtualLoop) -> list[bool]:
        events, seen = watched()
        lane = Lane("review", Steady(), clock=clock, events=events)
        for _ in range(5):
            task = asyncio.create_task(lane.do(work(clock)))
            await asyncio.sleep(0.35)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(1.0)
        return finished(seen)

    assert run_virtual(main) == [False] * 5


def test_a_run_cut_short_by_its_callers_own_deadline_is_not_a_failure_of_the_model() -> None:
    async def main(clock: VirtualLoop) -> list[bool]:
        events, seen = watched()
        lane = Lane("review", Steady(), clock=clock, events=events)
        with pytest.raises(ModelTimeout):
            await lane.do(work(clock, deadline=clock.now() + 0.5))
        await asyncio.sleep(1.0)
        return finished(seen)

    assert run_virtual(main) == [False]


def test_a_run_with_one_bad_item_is_not_a_failure_but_one_that_raises_is() -> None:
    async def main(clock: VirtualLoop) -> list[bool]:
        events, seen = watched()
        lane = Lane("review", Steady(), clock=clock, events=events)
        for payload in ("bad", "poison", "good"):
            await asyncio.gather(lane.do(work(clock, payload)), return_exceptions=True)
        await asyncio.sleep(0.1)
        return finished(seen)

    assert run_virtual(main) == [False, True, False]


def test_a_run_that_outlasts_the_longest_allowed_is_a_failure_even_if_it_ends_at_last() -> None:
    async def main(clock: VirtualLoop) -> list[bool]:
        async def slow(payloads: Sequence[Any], run: Run) -> list[Any]:
            await asyncio.sleep(10.0)
            return list(payloads)

        events, seen = watched()
        lane = Lane("review", slow, clock=clock, events=events, run_max_s=3.0)
        with pytest.raises(ModelTimeout):
            await lane.do(work(clock))
        await asyncio.sleep(10.0)
        return finished(seen)

    assert run_virtual(main) == [True]


def test_only_clean_runs_teach_the_estimate() -> None:
    async def main(clock: VirtualLoop) -> int:
        lane = Lane("review", Steady(), clock=clock)
        left = asyncio.create_task(lane.do(work(clock)))
        await asyncio.sleep(0.35)
        left.cancel()
        for payload in ("bad", "poison", "good"):
            await asyncio.gather(lane.do(work(clock, payload)), return_exceptions=True)
        return lane.service.seen

    assert run_virtual(main) == 1


def test_a_thousand_who_are_late_at_once_are_all_told() -> None:
    """The loop was busy elsewhere: every latest start has passed before any timer could fire."""

    async def main(clock: VirtualLoop) -> tuple[int, int]:
        async def blocking(payloads: Sequence[Any], run: Run) -> list[Any]:
            await asyncio.sleep(0.5)
            clock._advance(60.0)
            return list(payloads)

        lane = Lane("review", blocking, clock=clock, waiting_max=1000)
        first = lane.submit(work(clock))
        late = [lane.submit(work(clock), clock.now() + 5.0) for _ in range(1000)]
        await first
        ends = await asyncio.gather(*late, return_exceptions=True)
        return sum(isinstance(end, QueueTimeout) for end in ends), lane.waiting

    assert run_virtual(main) == (1000, 0)


def test_a_gathering_batch_does_not_keep_its_members_beyond_their_latest_start() -> None:
    async def main(clock: VirtualLoop) -> dict[str, float]:
        lane = Lane("review", Steady(), clock=clock, batch=BatchRule(8, window_s=5.0))
        first, second = work(clock, batch_key="b"), work(clock, batch_key="b")
        one = lane.submit(first)
        await asyncio.sleep(1.0)
        second.stamps.close("admit", clock.now())
        two = lane.submit(second, clock.now() + 0.5)
        await asyncio.gather(one, two)
        return second.stamps.parts()

    parts = run_virtual(main)
    assert parts["wait"] + parts["batch"] == pytest.approx(0.5)


def test_a_feasible_deadline_is_met_although_the_window_is_longer_than_the_slack() -> None:
    async def main(clock: VirtualLoop) -> float:
        lane = Lane("review", Steady(), clock=clock, batch=BatchRule(8, window_s=0.5))
        item = work(clock, batch_key="b", deadline=clock.now() + 1.2)
        await lane.do(item, clock.now() + 0.1)
        return item.stamps.total

    assert run_virtual(main) == pytest.approx(1.1, abs=0.01)


def test_late_work_does_not_slip_into_a_batch_behind_its_first_member() -> None:
    async def main(clock: VirtualLoop) -> tuple[Any, list[Any]]:
        async def blocking(payloads: Sequence[Any], run: Run) -> list[Any]:
            await asyncio.sleep(0.5)
            if payloads == ["blocks"]:
                clock._advance(10.0)
            return list(payloads)

        lane = Lane("review", blocking, clock=clock, batch=BatchRule(8))
        inside = lane.submit(work(clock, "blocks"))
        patient = lane.submit(work(clock, "patient", batch_key="b"))
        late = lane.submit(work(clock, "late", batch_key="b"), clock.now() + 5.0)
        return await inside, await asyncio.gather(patient, late, return_exceptions=True)

    _, (patient, late) = run_virtual(main)
    assert patient == "patient"
    assert isinstance(late, QueueTimeout)


def test_a_run_that_is_cancelled_from_inside_still_answers_its_caller() -> None:
    async def main(clock: VirtualLoop) -> Any:
        async def cancelled(payloads: Sequence[Any], run: Run) -> list[Any]:
            await asyncio.sleep(0.5)
            raise asyncio.CancelledError

        lane = Lane("review", cancelled, clock=clock)
        end = (await asyncio.gather(lane.do(work(clock)), return_exceptions=True))[0]
        return end, lane.running, lane.waiting

    end, running, waiting = run_virtual(main)
    assert isinstance(end, ModelError)
    assert (running, waiting) == (0, 0)


def test_a_listener_that_raises_is_never_felt(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualLoop) -> tuple[Any, int]:
        def broken(event: Event) -> None:
            raise RuntimeError(type(event).__name__)

        events, seen = Events(), []
        events.subscribe(broken)
        events.subscribe(seen.append)
        lane = Lane("review", Steady(), clock=clock, events=events)
        return await lane.do(work(clock)), len([e for e in seen if isinstance(e, Settled)])

    assert run_virtual(main) == ("x", 1)
    assert "a listener failed on Settled" in caplog.text


def test_hanging_up_between_admission_and_the_first_turn_of_the_loop_costs_no_inference() -> None:
    async def main(clock: VirtualLoop) -> tuple[int, int]:
        model = Steady()
        lane = Lane("review", model, clock=clock)
        future = lane.submit(work(clock))
        future.cancel()
        await asyncio.sleep(5.0)
        return model.runs, lane.running

    assert run_virtual(main) == (0, 0)


@pytest.mark.parametrize("leaver", [0, 1, 2])
def test_a_member_who_leaves_in_the_middle_of_the_window_does_not_delay_the_others(
    leaver: int,
) -> None:
    async def main(clock: VirtualLoop) -> tuple[float, list[int]]:
        lane = Lane("review", Steady(), clock=clock, batch=BatchRule(8, window_s=0.4))
        items = [work(clock, batch_key="b") for _ in range(3)]
        futures = [lane.submit(item) for item in items]
        await asyncio.sleep(0.2)
        futures[leaver].cancel()
        await asyncio.gather(*futures, return_exceptions=True)
        return clock.now(), [item.batch_size for i, item in enumerate(items) if i != leaver]

    ended, sizes = run_virtual(main)
    assert ended == pytest.approx(1.4)
    assert sizes == [2, 2]


def test_deadlines_that_are_absurdly_far_or_long_past_do_no_harm() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        lane = Lane("review", Steady(), clock=clock, service=ServiceTime(1.0))
        ends = await asyncio.gather(
            *(lane.do(work(clock, deadline=at)) for at in (1e300, inf, -1e300, -inf)),
            return_exceptions=True,
        )
        return [type(end).__name__ for end in ends]

    assert run_virtual(main) == ["str", "str", "QueueTimeout", "QueueTimeout"]


def padded(clock: VirtualLoop, model: Steady | None = None, **more: Any) -> Lane:
    """A lane whose runs take a tenth of a second and a hundredth for every token, and know it."""
    service = ServiceTime()
    for cost in (10.0, 40.0) * 8:
        service.learn(cost, 0.1 + cost / 100)
    rule = BatchRule(items_max=4, cost_max=40.0, padded=True)
    run = model or Steady()
    return Lane("e5", run, clock=clock, batch=rule, service=service, **more)


def tokens(clock: VirtualLoop, count: float, **more: Any) -> Work:
    return work(clock, cost=count, batch_key="pooled", **more)


def test_work_that_will_have_company_is_expected_to_take_as_long_as_the_company() -> None:
    async def main(clock: VirtualLoop) -> list[float]:
        lane = padded(clock)
        seen = [lane.view(tokens(clock, 10.0)).service_s]
        for _ in range(6):
            lane.submit(tokens(clock, 10.0))
            seen.append(lane.view(tokens(clock, 10.0)).service_s)
        await lane.drain()
        return seen

    # Alone at first; then with as many as wait; never with more than fit into one run.
    alone, one, two, three, *rest = run_virtual(main)
    assert [alone, one] == pytest.approx([0.2, 0.2])
    assert [two, three] == pytest.approx([0.3, 0.4])
    assert rest == pytest.approx([0.5, 0.5, 0.5])


def test_company_never_makes_those_late_whose_turn_it_is() -> None:
    class Sizes(Steady):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        async def __call__(self, payloads: Sequence[Any], run: Run) -> list[Any]:
            self.sizes.append(len(payloads))
            await asyncio.sleep(0.1 + len(payloads) / 10)
            return list(payloads)

    async def main(clock: VirtualLoop) -> tuple[list[int], list[str]]:
        model = Sizes()
        lane = padded(clock, model)
        first = lane.submit(tokens(clock, 10.0))
        hurried = lane.submit(tokens(clock, 10.0, deadline=clock.now() + 0.55))
        others = [lane.submit(tokens(clock, 10.0)) for _ in range(3)]
        ends = await asyncio.gather(first, hurried, *others, return_exceptions=True)
        return model.sizes, [type(end).__name__ for end in ends]

    sizes, ends = run_virtual(main)
    # The hurried one has 0.35 s when its turn comes: room for itself and one more, not for three.
    assert sizes == [1, 2, 2]
    assert ends == ["str"] * 5


def test_the_next_run_starts_before_the_answers_of_the_last_are_handed_out() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        events, seen = watched()
        lane = Lane("review", Steady(), clock=clock, events=events)
        await asyncio.gather(*(lane.do(work(clock)) for _ in range(2)))
        return [type(event).__name__ for event in seen]

    told = run_virtual(main)
    assert told == [
        "Admitted",
        "RunStarted",
        "Admitted",
        "RunFinished",
        "RunStarted",
        "Settled",
        "RunFinished",
        "Settled",
    ]
