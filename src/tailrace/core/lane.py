"""The lane: one model, one waiting room, a fixed number of batches in flight.

The lane enforces what admission decided: it answers at the latest start and at the deadline by itself,
frees the seat of a caller who leaves, and keeps a failing item, or a failing model, from taking others
along. It knows nothing of HTTP, of policies, or of what a model is: it takes a callable.

Everything here runs on one event loop; only `Batch`, as a `Run`, is used by the model's threads: they
mark its parts, and may claim the one that lies ready on deck.

Longer than most files: entering, boarding, settling and stopping change the same few variables, and every
promise of the lane (settled once, seats back, slots back) is kept by seeing all of them in one place.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from math import inf, isfinite
from typing import Any, Protocol

from tailrace.core.admission import LaneView
from tailrace.core.batch import LOOKAHEAD, BatchRule
from tailrace.core.clock import Clock
from tailrace.core.errors import (
    Draining,
    LaneFull,
    ModelBusy,
    ModelError,
    ModelHangs,
    ModelTimeout,
    QueueTimeout,
    TailraceError,
)
from tailrace.core.estimate import ServiceTime, start_in_s
from tailrace.core.events import Admitted, Events, RunFinished, RunStarted, Settled
from tailrace.core.line import Line
from tailrace.core.outlook import Outlook
from tailrace.core.seats import Batch, Seat
from tailrace.core.slots import Slots
from tailrace.core.work import ReadyRun, StagedRun, Work

log = logging.getLogger(__name__)

Runner = Callable[[Sequence[Any], StagedRun], Awaitable[Sequence[Any]]]
"""Runs payloads as one inference: a result per payload, an exception in the place of one that failed."""


class Deck(Protocol):
    """Where the next run lies ready, so that the model begins it without asking the lane."""

    def lay(self, payloads: Sequence[Any], run: ReadyRun) -> asyncio.Future[Sequence[Any]]:
        """Lay a run ready, in the place of what lay there; the future ends only if it is begun."""

    def clear(self) -> None:
        """Forget what lies ready."""


ON_MODEL = ("tokenize", "infer", "post")
"""The parts that are the model's own time."""
ELSEWHERE = ("dns", "connect", "tls", "send", "first-byte", "transfer")
"""The parts of the time with a model elsewhere."""


class Lane:
    """One model's line.

    `run` is awaited for at most `slots` batches at a time, each on a slot of the `budget` that lanes on
    the same cores share. `waiting_max` bounds the waiting room whatever the policies say; `run_max_s` is
    the longest a caller waits for a run that has begun. `service` learns from every clean run. With
    `abandons` a run that nobody waits for any more is cancelled: right for a model elsewhere, useless for
    a thread that cannot be stopped. While `hangs` says so, no slot will ever be free, and nobody is let
    in. With a `deck` the next run lies ready while all slots are taken: its members stay in line, and may
    leave it, until the model begins it.
    """

    def __init__(
        self,
        name: str,
        run: Runner,
        *,
        clock: Clock,
        slots: int = 1,
        budget: Slots | None = None,
        batch: BatchRule | None = None,
        service: ServiceTime | None = None,
        events: Events | None = None,
        waiting_max: int = 1000,
        run_max_s: float = inf,
        abandons: bool = False,
        deck: Deck | None = None,
        hangs: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self._slots = slots
        self._own_budget = budget is None
        self._budget = budget or Slots(slots)
        self._abandons = abandons
        self._hangs = hangs
        self._deck = deck
        self._next: tuple[Batch, asyncio.Future[Sequence[Any]]] | None = None
        self._newest: Seat | None = None
        self._paused_until = -inf
        self.waiting_max = waiting_max
        self.run_max_s = run_max_s
        self.batch = batch or BatchRule()
        self.service = service or ServiceTime()
        self.events = events or Events()
        self._run = run
        self._clock = clock
        self._waiting = Line()
        self._batches: list[Batch] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        self._pumping = False
        self._quiet = asyncio.Event()

    # -- looking in ---------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Pieces of work that hold a seat and have no place in a batch yet."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Pieces of work on the model, or in a batch that is gathering."""
        return sum(len(batch.members) for batch in self._batches)

    @property
    def draining(self) -> bool:
        """Whether the lane refuses new work."""
        return self._draining

    @property
    def slots(self) -> int:
        """Batches in flight at once, at most; more take effect at once, fewer as batches end."""
        return self._slots

    @slots.setter
    def slots(self, count: int) -> None:
        self._slots = max(1, count)
        if self._own_budget:
            self._budget.resize(self._slots)
        self._pump()

    @property
    def paused_s(self) -> float:
        """For how long the lane starts nothing."""
        return max(0.0, self._paused_until - self._clock.now())

    def pause(self, seconds: float) -> None:
        """Start nothing for `seconds`; what runs goes on, what waits keeps its place and its deadlines."""
        until = self._clock.now() + seconds
        if until > self._paused_until:
            self._paused_until = until
            self._clear_deck()
            self._at(until, self._pump)

    def line(self) -> list[tuple[Work, bool]]:
        """Who is inside, in order, and whether it has a place in a batch."""
        boarded = [(work, True) for batch in self._batches for work in batch.works()]
        return boarded + [(seat.work, False) for seat in self._waiting]

    def runs_s(self) -> list[float]:
        """For how long each run has been on the model."""
        now = self._clock.now()
        return [now - batch.started_at for batch in self._batches if batch.started_at is not None]

    def longest_run_s(self) -> float:
        """For how long the oldest run has been on the model; 0 where there is none."""
        return max(self.runs_s(), default=0.0)

    def free_in_s(self) -> list[float]:
        """For every slot, seconds until it is expected to be free."""
        return self._outlook().free_in_s()

    def ahead_s(self, before: Work | None = None) -> list[float]:
        """The expected service time of each run ahead of `before`, in order; by default of all."""
        return self._outlook().ahead_s(before)

    def view(self, work: Work | None = None) -> LaneView:
        """A still picture for a policy that must judge `work`; by default work of the usual cost."""
        return self._outlook().view(work)

    def _outlook(self) -> Outlook:
        return Outlook(
            self._clock.now(),
            self._waiting,
            self._batches,
            self._slots,
            self.batch,
            self.service,
            self.paused_s,
        )

    # -- entering -----------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise Draining or ModelHangs where nobody is let in, whatever a policy would say."""
        if self._draining:
            raise Draining
        if self._hangs():
            raise ModelHangs

    async def do(self, work: Work, latest_start: float = inf) -> Any:
        """`submit` and wait; cancelling the waiter is leaving."""
        return await self.submit(work, latest_start)

    def submit(self, work: Work, latest_start: float = inf) -> asyncio.Future[Any]:
        """Take a seat now, and give back the future of the model's result for `work`.

        Entering happens within this call: between a verdict and `submit` nobody else can slip in.
        Cancelling the future frees the seat, and the model's time if it has not begun.

        Raises:
            Draining, ModelHangs, LaneFull: at once: not admitted.

        The future raises:
            QueueTimeout: not started by `latest_start`, or by the work's own deadline.
            ModelTimeout: still running at the work's deadline, or for longer than `run_max_s`.
            ModelError: the model failed on this item. Any typed error of the model passes through.

        """
        self.check_open()
        if len(self._waiting) >= self.waiting_max:
            raise LaneFull(f"All {self.waiting_max} seats of lane {self.name} are taken.")
        latest_start = min(latest_start, work.deadline)
        seat = Seat(work, asyncio.get_running_loop().create_future(), latest_start)
        seat.future.add_done_callback(lambda future: self._left(seat, future))
        self._waiting.join(seat)
        self._newest = seat
        self.events.emit(Admitted(self.name, work.door))
        self._pump()
        if not seat.boarded and not seat.settled and isfinite(latest_start):
            seat.timer = self._at(latest_start, self._expire, seat)
        return seat.future

    def _left(self, seat: Seat, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self._settle(seat, "left")

    def _at(self, moment: float, then: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        delay = max(0.0, moment - self._clock.now())
        return asyncio.get_running_loop().call_later(delay, then, *args)

    # -- leaving ------------------------------------------------------------------------------

    def _expire(self, seat: Seat) -> None:
        if self._next is not None and seat in self._next[0].members:
            self._clear_deck()
            if seat.boarded:  # it had its turn just in time
                return
        waited = self._clock.now() - seat.work.stamps.last
        error = QueueTimeout(
            f"Waited {waited:.1f} s without a turn.",
            retry_after_s=start_in_s(self.free_in_s(), self.ahead_s()),
        )
        self._settle(seat, "queue-timeout", error=error)

    def _too_long(self, batch: Batch) -> None:
        batch.failed = batch.overload = True
        self._overrun(batch.members)

    def _overrun(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            self._settle(seat, "model-timeout", error=ModelTimeout())

    def _settle(
        self,
        seat: Seat,
        outcome: str,
        *,
        result: Any = None,
        error: BaseException | None = None,
    ) -> None:
        """Bring one piece of work to its end; only the first end of a piece of work counts."""
        if seat.settled:
            return
        if self._next is not None and seat in self._next[0].members:
            self._clear_deck()
        if seat.future.cancelled():
            outcome = "left"
        seat.settled = True
        seat.stop_timer()
        self._last_stamps(seat, outcome)
        if not seat.future.done():
            if error is not None:
                seat.future.set_exception(error)
            else:
                seat.future.set_result(result)
        self._tell(seat.work, outcome)
        self._abandon(seat.batch)
        self._pump()

    def _abandon(self, batch: Batch | None) -> None:
        """Cancel a run that nobody waits for, where that is of use; a run that just ends is left alone."""
        if not self._abandons or batch is None or batch.task is None or not batch.given_up():
            return
        if batch.task is not asyncio.current_task():
            batch.task.cancel()

    def _last_stamps(self, seat: Seat, outcome: str) -> None:
        """Close the parts of one piece of work; a run that was cut short counts as inference so far."""
        stamps, now = seat.work.stamps, self._clock.now()
        if not seat.boarded:
            self._waiting.leave(seat)
            stamps.close("wait", now)
            return
        batch = seat.batch
        assert batch is not None
        if batch.started_at is None:
            stamps.close("batch", now)
            self._thin_out(batch, seat)
            return
        stamps.close("batch", batch.started_at)
        for part, at in list(batch.marks):
            stamps.close(part, at)
        stamps.close(batch.doing if outcome in {"model-timeout", "left"} else "handover", now)

    def _thin_out(self, batch: Batch, seat: Seat) -> None:
        """A batch that is still gathering loses a member; an empty one gives its slot back."""
        batch.members.remove(seat)
        if not batch.members:
            batch.stop_timer()
            self._close(batch)

    def _close(self, batch: Batch) -> None:
        """A slot becomes free."""
        self._batches.remove(batch)
        self._budget.give()

    def _tell(self, work: Work, outcome: str) -> None:
        parts = work.stamps.parts()
        service_s = sum(parts.get(part, 0.0) for part in (*ON_MODEL, *ELSEWHERE))
        waited_s = parts.get("wait", 0.0) + parts.get("batch", 0.0)
        settled = Settled(self.name, work.door, outcome, waited_s, service_s, work.batch_size)
        self.events.emit(settled)

    # -- running ------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Fill the batches that are gathering and the slots that are free, as far as the line goes.

        Whoever is found late on the way is told; that settles, and settling calls for the pump again.
        """
        if self._pumping:
            return
        self._pumping = True
        try:
            self._fill()
        finally:
            self._pumping = False

    def _fill(self) -> None:
        for batch in list(self._batches):
            if batch.gathering:
                self._gather(batch)
        while self._waiting and len(self._batches) < self._slots and not self.paused_s:
            if self._next is not None:
                self._clear_deck()
            elif self._waiting.head.latest_start < self._clock.now():
                self._expire(self._waiting.head)
            elif self._budget.take(self._pump):
                self._open()
            else:
                break
        self._lay_next()
        if not self._waiting and not self._batches:
            self._quiet.set()
        else:
            self._quiet.clear()

    def _open(self) -> None:
        """Give a free slot to the head of the line; work that shares waits out the rest of its window.

        The window counts from the admission of the first: one that waited longer than that for its
        turn has given company its chance.
        """
        first = self._waiting.head
        batch = Batch(self._clock, first.work.stamps.last + self.batch.window_s)
        self._batches.append(batch)
        self._board(batch, first)
        self._gather(batch)

    def _gather(self, batch: Batch) -> None:
        """Let in who may share, and start when nobody else may or a member cannot wait any longer."""
        now = self._clock.now()
        for seat in self._company(batch, now):
            self._board(batch, seat)
        batch.expected_s = self.service.seconds(self.batch.cost(batch.works()))
        closes = min(batch.closes_at, *(seat.latest_start for seat in batch.members))
        batch.stop_timer()
        if closes <= now or self.batch.closed(batch.works()):
            self._start(batch)
        else:
            batch.timer = self._at(closes, self._start, batch)

    def _company(self, batch: Batch, starts: float) -> list[Seat]:
        """Who of the line may share the run of `batch` if it starts then."""
        members = batch.works()
        if self.batch.closed(members):
            return []
        near = islice(self._waiting, LOOKAHEAD)
        seats = {id(seat.work): seat for seat in near if seat.latest_start >= starts}
        for work in members:  # those of a batch on deck are in the line still
            seats.pop(id(work), None)
        # Company must not make those late whose turn it is.
        in_time = self.service.affords(min(work.deadline for work in members) - starts)
        line = [seat.work for seat in seats.values()]
        return [seats[id(work)] for work in self.batch.companions(members, line, in_time)]

    def _board(self, batch: Batch, seat: Seat) -> None:
        """Move a piece of work from the line into a batch."""
        batch.members.append(seat)
        self._boarded(batch, seat, self._clock.now())

    def _boarded(self, batch: Batch, seat: Seat, at: float) -> None:
        """The wait of a piece of work is over, its deadline still counts."""
        self._waiting.board(seat)
        seat.stop_timer()
        seat.batch = batch
        seat.work.stamps.close("wait", at)
        if isfinite(seat.work.deadline):
            seat.timer = self._at(seat.work.deadline, self._overrun, [seat])

    # -- on deck ------------------------------------------------------------------------------

    def _lay_next(self) -> None:
        """While all slots run, have the next run lie ready, made up of those who are in line now."""
        newest, self._newest = self._newest, None
        if self._deck is None or self._still_next(newest):
            return
        self._clear_deck()
        now = self._clock.now()
        if not self._may_lay() or self._waiting.head.latest_start < now:
            return
        batch = Batch(self._clock, now)
        batch.members.append(self._waiting.head)
        batch.members += self._company(batch, now + max(0.0, min(self.free_in_s())))
        batch.lay()
        payloads = [seat.work.payload for seat in batch.members]
        self._next = batch, self._deck.lay(payloads, batch.ask(batch.members))

    def _may_lay(self) -> bool:
        """Whether a slot of this lane will pass to its own next run, and that has no need to wait."""
        return (
            bool(self._waiting)
            and any(not batch.gathering for batch in self._batches)
            and len(self._batches) <= self._slots
            and not self.batch.window_s
            and not self.paused_s
            and not self._budget.contested(self._pump)
        )

    def _still_next(self, newest: Seat | None) -> bool:
        """Whether what lies on deck has begun by now, or would be made up just so again."""
        if self._next is None:
            return False
        batch, _ = self._next
        if batch.claimed:
            return True
        if not self._may_lay() or self._waiting.head is not batch.members[0]:
            return False
        return newest is None or not self.batch.companions(batch.works(), [newest.work])

    def _clear_deck(self) -> None:
        """Take back what lies on deck; where the model has begun it, it is a run like any other now."""
        if self._next is None or self._deck is None:
            return
        (batch, results), self._next = self._next, None
        if batch.recall():
            self._deck.clear()
            return
        assert batch.started_at is not None
        self._budget.inherit()
        self._batches.append(batch)
        for seat in batch.members:
            self._boarded(batch, seat, batch.started_at)
        batch.expected_s = self.service.seconds(self.batch.cost(batch.works()))
        self._begin(batch, batch.started_at, results)

    def _start(self, batch: Batch) -> None:
        batch.stop_timer()
        batch.started_at = self._clock.now()
        self._begin(batch, batch.started_at)

    def _begin(
        self, batch: Batch, started: float, results: Awaitable[Sequence[Any]] | None = None
    ) -> None:
        """A run has begun; `results` are those of one that the model took from the deck."""
        for work in batch.works():
            work.batch_size = len(batch.members)
        if isfinite(self.run_max_s):
            longest = started + self.run_max_s
            batch.timer = self._at(longest, self._too_long, batch)
        self.events.emit(RunStarted(self.name, tuple(work.door for work in batch.works())))
        # What is said of whoever asked (its trace) holds for the run; of many, the first one's does.
        context = batch.members[0].context
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._serve(batch, started, results), context=context)
        batch.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, batch: Batch, started: float, results: Awaitable[Sequence[Any]] | None
    ) -> None:
        try:
            await self._attempt(batch, list(batch.members), results)
        finally:
            for seat in batch.members:
                self._settle(seat, "failed", error=ModelError("The run was broken off."))
            self._release(batch, started)

    def _release(self, batch: Batch, started: float, *, clean: bool = False) -> None:
        """The model let go of the batch: learn from it, and give its slot to who waits.

        `clean` is one run, whole and undisturbed: only such a run tells how long runs take.
        """
        if batch.released:
            return
        batch.released = True
        seconds = (batch.marks[-1][1] if clean and batch.marks else self._clock.now()) - started
        if clean:
            self.service.learn(self.batch.cost(batch.works()), seconds, len(batch.members))
        batch.stop_timer()
        running = sum(not other.gathering for other in self._batches)
        if self._next is not None and self._next[0].claimed:
            self._clear_deck()
        self._close(batch)
        self.events.emit(
            RunFinished(
                self.name,
                len(batch.members),
                seconds,
                batch.failed,
                clean=clean,
                overload=batch.overload,
                running=running,
            )
        )
        self._pump()

    async def _attempt(
        self,
        batch: Batch,
        members: list[Seat],
        begun: Awaitable[Sequence[Any]] | None = None,
    ) -> None:
        """Run `members` together; where that fails as a whole, halve until the bad item is alone.

        `begun` are the results of a run of them that is under way.
        """
        wanted = [seat for seat in members if begun is not None or not seat.future.done()]
        if not wanted:
            return
        try:
            if begun is None:
                begun = self._run([seat.work.payload for seat in wanted], batch.ask(wanted))
            results = await begun
            if len(results) != len(wanted):
                raise ModelError(f"The model gave {len(results)} answers to {len(wanted)} items.")
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the lane lives on
            batch.failed = True
            batch.overload = getattr(error, "overload", False)
            if isinstance(error, ModelBusy):
                self.pause(error.pause_s)
            if len(wanted) == 1 or getattr(error, "whole", False):
                for seat in wanted:
                    self._settle(seat, "failed", error=as_typed(error))
                return
            batch.mark("infer")
            half = len(wanted) // 2
            await self._attempt(batch, wanted[:half])
            await self._attempt(batch, wanted[half:])
            return
        if len(members) == len(batch.members) and batch.started_at is not None:
            undisturbed = len(wanted) == len(members) and not any(
                seat.future.done() or isinstance(result, BaseException)
                for seat, result in zip(wanted, results, strict=True)
            )
            # The next run first: the model must not stand idle while these answers are handed out.
            self._release(batch, batch.started_at, clean=undisturbed)
        for seat, result in zip(wanted, results, strict=True):
            if isinstance(result, BaseException):
                self._settle(seat, "failed", error=as_typed(result))
            else:
                self._settle(seat, "done", result=result)

    # -- stopping -----------------------------------------------------------------------------

    async def drain(self, grace_s: float = inf) -> None:
        """Refuse new work, finish what was admitted, and return; after `grace_s` give the rest up.

        Work that is given up ends with Draining.
        """
        self._draining = True
        self._pump()
        try:
            async with asyncio.timeout(grace_s if isfinite(grace_s) else None):
                await self._quiet.wait()
        except TimeoutError:
            inside = [seat for batch in self._batches for seat in batch.members]
            for seat in [*self._waiting, *inside]:
                self._settle(seat, "failed", error=Draining())


def as_typed(error: BaseException) -> BaseException:
    """Typed errors pass; anything else becomes a ModelError that names it."""
    if isinstance(error, TailraceError):
        return error
    log.warning("the model raised %s: %s", type(error).__name__, error)
    failure = ModelError(f"The model failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
