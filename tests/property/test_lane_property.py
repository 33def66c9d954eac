"""The lane under random arrivals, hang-ups, deadlines and failures, on a virtual clock."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.batch import BatchRule
from tailrace.core.errors import LaneFull, TailraceError
from tailrace.core.events import Event, Events, RunFinished, RunStarted, Settled
from tailrace.core.lane import Lane
from tailrace.core.work import ReadyRun, Run, StagedRun, Stamps, Work
from tailrace.simulate.virtual import VirtualLoop, run_virtual

NS = 1e-9
Ready = tuple[Sequence[Any], ReadyRun, asyncio.Future[Sequence[Any]]]


@dataclass(frozen=True)
class Visit:
    """One caller: when it comes, what it brings, how long it stays."""

    after_s: float
    key: str | None
    cost: float
    seconds: float
    patience_s: float | None
    latest_s: float | None
    deadline_s: float | None
    fate: str


moments = st.floats(0.0, 3.0).map(lambda x: round(x, 3))
maybe = st.one_of(st.none(), moments)
visits = st.builds(
    Visit,
    after_s=st.one_of(st.just(0.0), st.floats(0.0, 0.6).map(lambda x: round(x, 3))),
    key=st.sampled_from([None, "a", "a", "b"]),
    cost=st.floats(0.5, 4.0).map(lambda x: round(x, 2)),
    seconds=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    patience_s=maybe,
    latest_s=maybe,
    deadline_s=maybe,
    fate=st.sampled_from(["ok"] * 8 + ["bad", "poison"]),
)
lanes = st.fixed_dictionaries(
    {
        "slots": st.integers(1, 3),
        "items_max": st.integers(1, 5),
        "cost_max": st.sampled_from([3.0, 8.0, inf]),
        "window_s": st.sampled_from([0.0, 0.025, 0.3]),
        "waiting_max": st.sampled_from([3, 1000]),
        "run_max_s": st.sampled_from([0.4, inf]),
        "on_deck": st.booleans(),
        "lag_s": st.sampled_from([0.0, 0.02]),
    }
)


class Probe:
    """The model: sleeps the sum of what it is given, notes who ran with whom and when.

    It has as many threads as the lane has slots; one that ends a run takes what lies ready, and the lane
    hears of the end `lag_s` later.
    """

    def __init__(self, clock: VirtualLoop, slots: int = 1, lag_s: float = 0.0) -> None:
        self.clock, self.lag_s = clock, lag_s
        self.runs: list[tuple[float, list[Work]]] = []
        self.at_once = self.most_at_once = 0
        self.taken = 0
        self.ready: Ready | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self._threads = asyncio.Semaphore(slots)
        self._handed_in = 0

    async def __call__(self, payloads: Sequence[Any], run: StagedRun) -> list[Any]:
        self._handed_in += 1
        await self._threads.acquire()
        self._handed_in -= 1
        return await self._on_thread(payloads, run)

    def lay(self, payloads: Sequence[Any], run: ReadyRun) -> asyncio.Future[Sequence[Any]]:
        future: asyncio.Future[Sequence[Any]] = self.clock.create_future()
        self.ready = payloads, run, future
        return future

    def clear(self) -> None:
        self.ready = None

    async def _on_thread(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        try:
            return await self._run(payloads, run)
        finally:
            self._next()
            if self.lag_s:
                await asyncio.sleep(self.lag_s)

    def _next(self) -> None:
        if self.ready is not None and not self._handed_in:
            (payloads, run, future), self.ready = self.ready, None
            if run.claim():
                self.taken += 1
                task = asyncio.create_task(self._taken(payloads, run, future))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
                return
        self._threads.release()

    async def _taken(
        self, payloads: Sequence[Any], run: Run, future: asyncio.Future[Sequence[Any]]
    ) -> None:
        try:
            answers = await self._on_thread(payloads, run)
        except ValueError as error:
            future.set_exception(error)
        else:
            future.set_result(answers)

    async def _run(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        self.runs.append((self.clock.now(), [work for work, _ in payloads]))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            run.mark("tokenize")
            for index, (_, visit) in enumerate(payloads):
                if run.wanted(index):
                    await asyncio.sleep(visit.seconds)
                if visit.fate == "poison":
                    raise ValueError("poison")
            run.mark("infer")
            run.mark("post")
            return [ValueError("bad") if v.fate == "bad" else id(w) for w, v in payloads]
        finally:
            self.at_once -= 1


class Story:
    """Everything that happened, for the checks."""

    def __init__(self) -> None:
        self.ends: list[tuple[Work, Visit, float, Any]] = []
        self.refused = 0
        self.events: list[Event] = []


async def play(clock: VirtualLoop, rule: dict[str, Any], crowd: list[Visit]) -> tuple[Any, ...]:
    story, events = Story(), Events()
    probe = Probe(clock, rule["slots"], rule["lag_s"])
    events.subscribe(story.events.append)
    lane = Lane(
        "random",
        probe,
        deck=probe if rule["on_deck"] else None,
        clock=clock,
        slots=rule["slots"],
        batch=BatchRule(rule["items_max"], rule["cost_max"], rule["window_s"]),
        events=events,
        waiting_max=rule["waiting_max"],
        run_max_s=rule["run_max_s"],
    )

    async def call(visit: Visit) -> None:
        now = clock.now()
        work = Work(
            None,
            Stamps(now),
            cost=visit.cost,
            batch_key=visit.key,
            deadline=inf if visit.deadline_s is None else now + visit.deadline_s,
        )
        work.payload = (work, visit)
        latest = inf if visit.latest_s is None else now + visit.latest_s
        work.stamps.close("admit", clock.now())
        try:
            future = lane.submit(work, latest)
        except LaneFull:
            story.refused += 1
            return
        await asyncio.wait({future}, timeout=visit.patience_s)
        end: Any = "left"
        if not future.cancel():
            end = future.exception() or future.result()
        latest = min(latest, work.deadline)
        story.ends.append((work, visit, latest, end))

    tasks = []
    for visit in crowd:
        await asyncio.sleep(visit.after_s)
        tasks.append(asyncio.create_task(call(visit)))
    await asyncio.gather(*tasks)
    await lane.drain()
    await asyncio.sleep(0)
    return lane, probe, story


@settings(max_examples=150, deadline=None)
@given(rule=lanes, crowd=st.lists(visits, min_size=1, max_size=25))
def test_whatever_happens_everyone_is_settled_once_and_the_lane_is_empty_again(
    rule: dict[str, Any], crowd: list[Visit]
) -> None:
    lane, probe, story = run_virtual(lambda clock: play(clock, rule, crowd))

    assert len(story.ends) + story.refused == len(crowd)
    settled = [event for event in story.events if isinstance(event, Settled)]
    assert len(settled) == len(story.ends)
    assert Counter(event.outcome for event in settled) == Counter(
        _outcome(end) for *_, end in story.ends
    )
    assert (lane.waiting, lane.running, lane.line()) == (0, 0, [])
    started = sum(isinstance(event, RunStarted) for event in story.events)
    assert started == sum(isinstance(event, RunFinished) for event in story.events)
    assert probe.most_at_once <= rule["slots"]


def _outcome(end: Any) -> str:
    if end == "left":
        return "left"
    if isinstance(end, TailraceError):
        return {"queue-timeout": "queue-timeout", "model-timeout": "model-timeout"}.get(
            end.code, "failed"
        )
    return "done"


@settings(max_examples=150, deadline=None)
@given(rule=lanes, crowd=st.lists(visits, min_size=1, max_size=25))
def test_parts_add_up_starts_keep_their_promise_and_batches_keep_the_rule(
    rule: dict[str, Any], crowd: list[Visit]
) -> None:
    _, probe, story = run_virtual(lambda clock: play(clock, rule, crowd))

    for work, visit, _, end in story.ends:
        parts = work.stamps.parts()
        assert abs(sum(parts.values()) - work.stamps.total) <= NS
        assert all(seconds >= 0.0 for seconds in parts.values())
        assert list(parts) == sorted(parts, key=ORDER.index)
        if isinstance(end, int):
            assert end == id(work)
            assert visit.fate == "ok"
            assert work.stamps.start + work.stamps.total <= work.deadline + NS

    first_start: dict[int, float] = {}
    for at, members in probe.runs:
        for work in members:
            first_start.setdefault(id(work), at)
        if len(members) > 1:
            assert len({work.batch_key for work in members}) == 1
            assert members[0].batch_key is not None
            assert len(members) <= rule["items_max"]
            assert sum(work.cost for work in members) <= rule["cost_max"] + NS
    for work, _, latest, end in story.ends:
        if id(work) in first_start:
            assert first_start[id(work)] <= latest + NS
        if isinstance(end, TailraceError) and end.code == "queue-timeout":
            assert id(work) not in first_start
            assert abs(work.stamps.last - latest) <= NS or latest <= work.stamps.start


ORDER = ["admit", "wait", "batch", "tokenize", "infer", "post", "handover"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["ok"] * 6 + ["bad", "poison"]), min_size=1, max_size=12))
def test_a_failing_item_never_takes_its_neighbours_along(fates: list[str]) -> None:
    crowd = [Visit(0.0, "a", 1.0, 0.01, None, None, None, fate) for fate in fates]
    rule = {
        "slots": 1,
        "items_max": 8,
        "cost_max": inf,
        "window_s": 0.1,
        "waiting_max": 1000,
        "run_max_s": inf,
        "on_deck": True,
        "lag_s": 0.0,
    }
    _, _, story = run_virtual(lambda clock: play(clock, rule, crowd))
    for _, visit, _, end in story.ends:
        assert isinstance(end, int) == (visit.fate == "ok")


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 30),
    slots=st.integers(1, 3),
    grace_s=st.sampled_from([0.0, 0.25, 2.0, inf]),
)
def test_draining_settles_everybody_within_the_grace(
    count: int, slots: int, grace_s: float
) -> None:
    async def main(clock: VirtualLoop) -> tuple[float, list[Any], int]:
        probe = Probe(clock)
        lane = Lane("drained", probe, clock=clock, slots=slots)
        visit = Visit(0.0, None, 1.0, 0.1, None, None, None, "ok")
        futures = []
        for _ in range(count):
            work = Work(None, Stamps(clock.now()))
            work.payload = (work, visit)
            futures.append(lane.submit(work))
        await lane.drain(grace_s)
        took = clock.now()
        return took, await asyncio.gather(*futures, return_exceptions=True), lane.waiting

    took, ends, waiting = run_virtual(main)
    assert took <= grace_s + NS
    assert waiting == 0
    assert all(isinstance(end, int) or end.code == "draining" for end in ends)
    if grace_s == inf:
        assert all(isinstance(end, int) for end in ends)
