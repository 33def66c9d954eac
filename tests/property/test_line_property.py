"""The fair line and the shared budget of slots, under random callers."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.lane import Lane
from tailrace.core.line import Line
from tailrace.core.seats import Seat
from tailrace.core.slots import Slots
from tailrace.core.work import Run, Stamps, Work
from tailrace.simulate.virtual import VirtualLoop, run_virtual

works = st.builds(
    lambda caller, cost, yields: Work("x", Stamps(0.0), caller=caller, cost=cost, yields=yields),
    st.sampled_from(["ann", "bob", "eve"]),
    st.floats(0.5, 5.0),
    st.sampled_from([0.0, 0.0, 20.0]),
)
steps = st.one_of(
    works,
    st.sampled_from(["board", "board"]),
    st.integers(0, 50),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=60))
def test_places_are_total_and_nobody_is_overtaken_by_a_later_piece_of_its_own(
    script: list[Any],
) -> None:
    line, inside, arrived = Line(), [], {}
    for step in script:
        if isinstance(step, Work):
            before = [seat.work for seat in line.ahead_of(step)]
            seat = Seat(step, None)  # type: ignore[arg-type]
            arrived[id(seat)] = len(arrived)
            line.join(seat)
            order = [other.work for other in line]
            assert order[: len(before)] == before, "the place told before joining is the place"
            assert order[len(before)] is step
            inside.append(seat)
        elif step == "board" and inside:
            head = line.head
            line.board(head)
            inside.remove(head)
        elif isinstance(step, int) and inside:
            line.leave(inside.pop(step % len(inside)))
        order = list(line)
        assert len(line) == len(inside) == len(order)
        assert line.ahead() == pytest.approx(
            (len(order), sum(seat.work.cost for seat in order)), abs=1e-9
        )
        assert {id(seat) for seat in order} == {id(seat) for seat in inside}
        for place, seat in enumerate(order):
            assert len(list(line.ahead_of(seat.work))) == place
            count, cost = line.ahead(seat.work)
            assert count == place
            assert cost == pytest.approx(
                sum(before.work.cost for before in order[:place]), abs=1e-9
            )
            assert seat in line
        for caller in ("ann", "bob", "eve"):
            for yields in (0.0, 20.0):
                mine = [
                    arrived[id(s)]
                    for s in order
                    if (s.work.caller, s.work.yields) == (caller, yields)
                ]
                assert mine == sorted(mine)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.5, 3.0), min_size=1, max_size=20), st.integers(20, 200))
def test_who_asks_seldom_does_not_wait_behind_the_whole_crowd_of_another(
    costs: list[float], crowd: int
) -> None:
    line = Line()
    for _ in range(crowd):
        line.join(Seat(Work("x", Stamps(0.0), caller="many", cost=1.0), None))  # type: ignore[arg-type]
    one = Work("x", Stamps(0.0), caller="one", cost=costs[0])
    assert len(list(line.ahead_of(one))) <= 1


def test_lower_class_work_is_passed_for_a_while_but_never_starves() -> None:
    line = Line()
    patient = Seat(Work("p", Stamps(0.0), caller="p", cost=1.0, yields=10.0), None)  # type: ignore[arg-type]
    line.join(patient)
    passed = 0
    for _ in range(100):
        line.join(Seat(Work("x", Stamps(0.0), caller="x", cost=1.0), None))  # type: ignore[arg-type]
        if line.head is patient:
            break
        line.board(line.head)
        passed += 1
    assert 5 <= passed <= 15


@settings(max_examples=80, deadline=None)
@given(
    budget=st.integers(1, 3),
    visits=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([0.0, 0.0, 0.1, 0.35]),
            st.sampled_from([0.05, 0.2]),
            st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.3])),
        ),
        min_size=1,
        max_size=30,
    ),
)
def test_lanes_that_share_a_budget_never_exceed_it_and_never_forget_anyone(
    budget: int, visits: list[tuple[int, float, float, float | None]]
) -> None:
    async def main(clock: VirtualLoop) -> tuple[int, Counter[str], list[int], int]:
        slots, now, most = Slots(budget), 0, 0

        async def run(payloads: Sequence[Any], run: Run) -> list[Any]:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(sum(payloads))
            now -= 1
            return list(payloads)

        lanes = [Lane(str(i), run, clock=clock, slots=2, budget=slots) for i in range(3)]

        async def call(lane: Lane, seconds: float, patience: float | None) -> str:
            future = lane.submit(Work(seconds, Stamps(clock.now())))
            await asyncio.wait({future}, timeout=patience)
            return "left" if future.cancel() else "done"

        tasks = []
        for number, pause, seconds, patience in visits:
            await asyncio.sleep(pause)
            tasks.append(asyncio.create_task(call(lanes[number], seconds, patience)))
        ends = Counter(await asyncio.gather(*tasks))
        await asyncio.gather(*(lane.drain() for lane in lanes))
        return most, ends, [lane.running + lane.waiting for lane in lanes], slots.taken

    most, ends, left, taken = run_virtual(main)
    assert most <= budget
    assert sum(ends.values()) == len(visits)
    assert left == [0, 0, 0]
    assert taken == 0
