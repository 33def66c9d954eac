"""The real lane on a virtual clock: requests go to it as they were meant to, and take the time they take.

Nothing of the lane is modelled here: entering, seats, batches, deadlines and leaving are its own code. Knows
nothing of where arrivals and times come from, nor of what is made of the result.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import ceil, inf, isfinite
from typing import Any

from tailrace.core.errors import ModelError, QueueTimeout, Rejected
from tailrace.core.events import Event, RunFinished
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.virtual import VirtualLoop, run_virtual
from tailrace.simulate.visits import End, Replayed, Stay, Visit
from tailrace.tickets.desk import Desk
from tailrace.tickets.memory import MemoryLedger

RunTime = Callable[[Sequence[float]], float]
"""Seconds of one run, from the weights of its members."""
SHARED = "shared"
KEPT_S = 1e9
"""Tickets of a replay are kept to its end."""


def replay(
    visits: Sequence[Visit],
    plan: LanePlan,
    run_s: RunTime,
    *,
    callers: CallerPlan | None = None,
    turnaround_s: float = 0.0,
    closed: int | None = None,
) -> Replayed:
    """Send `visits` (in order of arrival) through a lane of `plan`.

    `run_s` tells how long a run takes from its members' weights; `turnaround_s` more pass before the lane has
    the result. With `closed` so many callers ask one after the other instead.
    """

    async def main(loop: VirtualLoop) -> Replayed:
        return await _Replay(
            loop, visits, plan, run_s, callers or CallerPlan(), turnaround_s, closed
        ).run()

    return run_virtual(main)


class _Try:
    """One try of one request: what has passed of it."""

    __slots__ = (
        "answered",
        "batch",
        "began",
        "entered",
        "future",
        "index",
        "over",
        "run_s",
        "started",
        "timer",
    )

    def __init__(self, index: int, began: float) -> None:
        self.index, self.began = index, began
        self.entered: float | None = None
        """When it stood before the lane."""
        self.started: float | None = None
        """When its run began."""
        self.run_s = 0.0
        self.batch = 0
        self.future: asyncio.Future[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.answered = False
        """Whether the lane's side is over and the answer is on its way."""
        self.over = False


class _Replay:
    def __init__(
        self,
        loop: VirtualLoop,
        visits: Sequence[Visit],
        plan: LanePlan,
        run_s: RunTime,
        callers: CallerPlan,
        turnaround_s: float,
        closed: int | None,
    ) -> None:
        self._loop, self._visits, self._plan = loop, visits, plan
        self._run_s, self._callers, self._turnaround_s = run_s, callers, turnaround_s
        self._closed = closed
        self._admission = plan.admission()
        self._lane = Lane(
            "replay",
            self._model,
            clock=loop,
            slots=plan.slots,
            batch=plan.batch,
            waiting_max=plan.waiting_max,
        )
        self._lane.events.subscribe(self._count)
        self._desk = self._make_desk() if plan.tickets else None
        self.stays = [Stay() for _ in visits]
        self._left = len(visits)
        self._next = 0
        self._done = loop.create_future()
        self._busy_s = 0.0
        self._runs = 0

    async def run(self) -> Replayed:
        """Let everything happen."""
        worker = None if self._desk is None else asyncio.create_task(self._desk.work())
        if not self._visits:
            self._done.set_result(None)
        elif self._closed is None:
            self._arrive()
        else:
            for _ in range(min(self._closed, len(self._visits))):
                self._following()
        await self._done
        until = self._loop.now()
        await self._lane.drain()
        if self._desk is not None and worker is not None:
            self._desk.close()
            await worker
        return Replayed(self.stays, self._busy_s, self._runs, until)

    # -- the model ----------------------------------------------------------------------------

    async def _model(self, tries: Sequence[Any], run: Run) -> Sequence[Any]:
        now = self._loop.now()
        run_s = self._run_s([self._visits[attempt.index].weight for attempt in tries])
        for attempt in tries:
            attempt.started, attempt.run_s, attempt.batch = now, run_s, len(tries)
        run.mark("tokenize")
        await _pass(self._loop, run_s)
        run.mark("infer")
        if self._turnaround_s:
            await _pass(self._loop, self._turnaround_s)
        return tries

    def _count(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self._busy_s += event.seconds
            self._runs += 1

    # -- one request --------------------------------------------------------------------------

    def _arrive(self) -> None:
        """In an open loop: the next request at its moment; one timer at a time keeps the heap small."""
        if self._next < len(self._visits):
            self._loop.call_at(self._visits[self._next].at_s, self._arrived)

    def _arrived(self) -> None:
        index, self._next = self._next, self._next + 1
        self._arrive()
        self._start(index)

    def _following(self) -> None:
        """In a closed loop: the next request, after its caller's pause."""
        if self._next < len(self._visits):
            index, self._next = self._next, self._next + 1
            self._loop.call_later(self._visits[index].at_s, self._start, index)

    def _start(self, index: int) -> None:
        self.stays[index].at_s = self._loop.now()
        self._try(index)

    def _try(self, index: int) -> None:
        loop, visit = self._loop, self._visits[index]
        attempt = _Try(index, loop.now())
        self.stays[index].tries += 1
        if isfinite(self._callers.timeout_s):
            attempt.timer = loop.call_later(self._callers.timeout_s, self._give_up, attempt)
        loop.call_later(visit.before_s, self._reach, attempt)

    def _reach(self, attempt: _Try) -> None:
        attempt.entered = self._loop.now()
        visit = self._visits[attempt.index]
        if visit.known:
            self._answer(attempt, "ok", 200)
        elif visit.elsewhere_s:
            self._loop.call_later(visit.elsewhere_s, self._enter, attempt)
        else:
            self._enter(attempt)

    def _enter(self, attempt: _Try) -> None:
        if attempt.over:
            return
        stamps = Stamps(self._loop.now())
        try:
            if self._desk is not None:
                self._desk.submit(attempt, 1.0, stamps)
                return
            work = Work(attempt, stamps, batch_key=SHARED if self._plan.shares else None)
            policies = self._admission.policies
            latest = self._admission.admit(work, self._lane.view(work)) if policies else inf
            attempt.future = self._lane.submit(work, latest)
        except Rejected:
            self._answer(attempt, "refused", 429)
            return
        attempt.future.add_done_callback(lambda future: self._settled(attempt, future))

    def _settled(self, attempt: _Try, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, QueueTimeout):
            self._answer(attempt, "refused", 503)
        elif isinstance(error, ModelError):
            raise error
        else:
            self._answer(attempt, "ok", 200)

    def _answer(self, attempt: _Try, outcome: End, status: int) -> None:
        """The lane's side is over: the answer travels."""
        if not attempt.over:
            attempt.answered = True
            after_s = self._visits[attempt.index].after_s
            self._loop.call_later(after_s, self._end, attempt, outcome, status)

    def _give_up(self, attempt: _Try) -> None:
        """The caller waits no longer; the lane learns of it when the closing has travelled."""
        future = attempt.future
        if future is not None:
            self._loop.call_later(self._visits[attempt.index].after_s, future.cancel)
        self._end(attempt, "timeout", None)

    def _end(self, attempt: _Try, outcome: End, status: int | None) -> None:
        if attempt.over:
            return
        attempt.over = True
        if attempt.timer is not None:
            attempt.timer.cancel()
        stay, now = self.stays[attempt.index], self._loop.now()
        self._book(stay, attempt, now)
        stay.outcome, stay.status = outcome, status
        if outcome != "ok" and stay.tries <= self._callers.retries:
            stay.paused_s += self._callers.pause_s
            self._loop.call_later(self._callers.pause_s, self._try, attempt.index)
            return
        stay.wall_s = now - stay.at_s
        self._left -= 1
        if self._closed is not None:
            self._following()
        if not self._left:
            self._done.set_result(None)

    def _book(self, stay: Stay, attempt: _Try, now: float) -> None:
        """Divide the try, as far as it came, into where its time went."""
        entered = now if attempt.entered is None else attempt.entered
        started = attempt.started
        known = self._visits[attempt.index].known
        if started is None:  # refused, known, or still in the line when its caller left
            queue = 0.0 if known else self._line_s(attempt, now)
            service = 0.0
        else:
            queue = started - entered
            service = min(attempt.run_s, now - started)
        stay.before_s += entered - attempt.began
        stay.queue_s += queue
        stay.service_s += service
        stay.after_s += now - entered - queue - service
        stay.batch = attempt.batch

    def _line_s(self, attempt: _Try, now: float) -> float:
        """How long a try that never ran stood in the line."""
        if attempt.entered is None:
            return 0.0
        after_s = self._visits[attempt.index].after_s
        return now - attempt.entered - (after_s if attempt.answered else 0.0)

    def _make_desk(self) -> Desk:
        return Desk(
            "queue",
            MemoryLedger(KEPT_S, len(self._visits) + 1),
            self._lane,
            self._admission,
            clock=self._loop,
            lease_s=KEPT_S,
            sweep_every_s=KEPT_S,
            answered=self._ticket_done,
        )

    def _ticket_done(self, attempt: _Try, _: object) -> None:
        """The answer lies ready until its caller looks for it again."""
        assert attempt.entered is not None
        visit = self._visits[attempt.index]
        look_s = self._callers.poll_s + visit.before_s + visit.after_s
        since = self._loop.now() - attempt.entered
        looks = ceil(since / look_s) if look_s > 0 else 0
        self._loop.call_later(
            looks * look_s - since if look_s > 0 else 0.0, self._answer, attempt, "ok", 200
        )


async def _pass(loop: VirtualLoop, seconds: float) -> None:
    """Sleep without a task of its own."""
    future = loop.create_future()
    loop.call_later(seconds, _wake, future)
    await future


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
