"""The review box: one model, one lane, four doors, wired together.

The composition root of the app. Knows every part; decides nothing itself. HTTP is in routes.py.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any

from tailrace.apps.review.naive import choose_limit, naive_child
from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.topics import Topics
from tailrace.cache.memory import MemoryCache
from tailrace.core.clock import Clock
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Event, Events, Refused, RunFinished, Settled
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.models.child import ChildModel
from tailrace.models.port import CrossEncoder
from tailrace.models.threads import InferenceThreads
from tailrace.serve.account import Account
from tailrace.serve.doors import Door, Pipeline
from tailrace.serve.metrics import Metrics
from tailrace.serve.tracer import open_tracer
from tailrace.tickets.desk import Desk
from tailrace.tickets.memory import MemoryLedger
from tailrace.tickets.port import State

log = logging.getLogger(__name__)

DOORS = ("naive", "limited", "batched", "queue")
LANE = "review"
BATCH_KEY = "batched"
FAILED_RUNS_UNREADY = 3
"""After so many failed runs in a row the box says that it is not ready."""


class ReviewBox:
    """Everything that runs, and what the routes need of it."""

    def __init__(
        self,
        settings: BoxSettings,
        model: CrossEncoder,
        threads: InferenceThreads,
        topics: Topics,
        *,
        clock: Clock,
        service: ServiceTime,
        child: ChildModel | None = None,
    ) -> None:
        self.settings = settings
        self.model = model
        self.topics = topics
        self.clock = clock
        self.events = Events()
        self.metrics = Metrics(LANE, DOORS, [str(state) for state in State])
        self.tracer = open_tracer(settings.tracing.choice(), "tailrace-review", self.metrics)
        self.cache = MemoryCache(settings.cache.entries_max)
        self.pipeline = Pipeline(self.cache, clock)
        self._threads = threads
        self.lane = Lane(
            LANE,
            self._infer,
            clock=clock,
            slots=settings.lane.slots,
            batch=settings.lane.batch.rule(),
            service=service,
            events=self.events,
            waiting_max=settings.lane.waiting_max,
            run_max_s=settings.lane.run_max_s,
        )
        self.doors = {name: self._door(name) for name in ("limited", "batched", "queue")}
        self.desk = Desk(
            "queue",
            MemoryLedger(settings.tickets.keep_s, settings.tickets.kept_max),
            self.lane,
            self.doors["queue"].admission,
            clock=clock,
            lease_s=settings.lane.run_max_s * 2,
            answered=lambda text, scores: self.cache.put(self.key(text), scores),
            finished=self._ticket_ended,
        )
        self.child = child or self._child()
        self.in_progress = Counter(dict.fromkeys(DOORS, 0))
        self.refused: dict[str, Counter[str]] = {name: Counter() for name in DOORS}
        self.answered = Counter(dict.fromkeys(DOORS, 0))
        self._failed_runs = 0
        self._worker: asyncio.Task[None] | None = None
        self._listen()

    def _door(self, name: str) -> Door:
        settings = getattr(self.settings.doors, name)
        return Door(
            name,
            self.lane,
            settings.admission(),
            seats=settings.seats(self.settings.lane.waiting_max),
            batch_key=BATCH_KEY if settings.batch else None,
        )

    def _child(self) -> ChildModel | None:
        naive, model = self.settings.naive, self.settings.model
        if not naive.enabled:
            return None
        return naive_child(
            model.source,
            str(model.cache_dir) if model.cache_dir else None,
            limit_bytes=(naive.memory_limit_mib or 0) << 20,
            in_flight_max=naive.in_flight_max,
            events=self.events,
        )

    def _ticket_ended(self, stamps: Stamps, error: str) -> None:
        """The parts of a ticket that its request did not see: they count like a request's own."""
        account = Account(stamps, error=error)
        account.through(DOORS[-1], LANE)
        self.metrics.ended(account)
        if self.tracer is not None:
            self.tracer.worked("queue job", account)

    # -- what happened ------------------------------------------------------------------------

    def _listen(self) -> None:
        self.events.subscribe(self.metrics)
        self.events.subscribe(self._count)
        gauge, lane = self.metrics.gauge, self.lane
        gauge("in_progress", "Requests inside a door", ("door",), self._read_in_progress)
        gauge("waiting", "Work that waits, by door", ("door",), self._read_waiting)
        gauge("running", "Work on the model", (), lambda: {(): float(lane.running)})
        gauge("tickets", "Tickets by state", ("state",), self._read_tickets)
        gauge("service_seconds", "Expected time on the model", (), self._read_service)
        gauge("cache_entries", "Answers kept", (), lambda: {(): float(self.cache.stats().entries)})
        gauge("child_resident_bytes", "Memory the naive child uses", (), self._read_child)
        gauge("child_limit_bytes", "Memory at which it is killed", (), self._read_limit)
        gauge("ready", "Whether work is taken in", (), lambda: {(): float(self.ready()[0])})

    def _count(self, event: Event) -> None:
        match event:
            case Refused(door=door, reason=reason):
                self.refused[door][reason] += 1
            case Settled(door=door, outcome=outcome):
                if outcome == "done":
                    self.answered[door] += 1
                elif outcome != "left":
                    self.refused[door][outcome] += 1
                if door in self.doors:
                    self.doors[door].admission.observe(event)
            case RunFinished(failed=failed):
                self._failed_runs = self._failed_runs + 1 if failed else 0

    def _read_in_progress(self) -> dict[tuple[str, ...], float]:
        return {(door,): float(self.in_progress[door]) for door in DOORS}

    def waiting(self) -> Counter[str]:
        """How many wait at each door."""
        waiting = Counter(dict.fromkeys(DOORS, 0))
        waiting.update(work.door for work, boarded in self.lane.line() if not boarded)
        waiting["queue"] += len(self.desk.ledger.waiting())
        return waiting

    def _read_waiting(self) -> dict[tuple[str, ...], float]:
        return {(door,): float(count) for door, count in self.waiting().items()}

    def _read_tickets(self) -> dict[tuple[str, ...], float]:
        return {(str(s),): float(n) for s, n in self.desk.ledger.counts().items()}

    def _read_service(self) -> dict[tuple[str, ...], float]:
        return {(): self.service_s()}

    def _read_child(self) -> dict[tuple[str, ...], float]:
        return {(): float(self.child.resident_bytes if self.child else 0)}

    def _read_limit(self) -> dict[tuple[str, ...], float]:
        return {(): float(self.child.limit_bytes if self.child else 0)}

    # -- the model ----------------------------------------------------------------------------

    async def _infer(self, payloads: Sequence[Any], run: Run) -> Sequence[Any]:
        score = self.model.score
        return await self._threads.call(score, payloads, self.topics.labels, run)

    def work(self, text: str, door: str, stamps: Stamps, deadline: float, caller: str) -> Work:
        """The text as a piece of work for a door."""
        key = self.doors[door].batch_key
        cost = self.model.cost(text, self.topics.labels)
        return Work(
            text, stamps, door=door, cost=cost, batch_key=key, deadline=deadline, caller=caller
        )

    def key(self, text: str) -> Hashable:
        """What the answer to a text is kept under: another model or other topics never meet it."""
        return (self.model.info.fingerprint, self.topics.fingerprint, text)

    def service_s(self) -> float:
        """Expected seconds on the model for a review of usual length."""
        service = self.lane.service
        return service.seconds(service.typical_cost)

    def ready(self) -> tuple[bool, str]:
        """Whether work is taken in and the model answers; else why not."""
        if self.lane.draining:
            return False, "The box is shutting down."
        if self._failed_runs >= FAILED_RUNS_UNREADY:
            return False, f"The last {self._failed_runs} runs of the model failed."
        return True, ""

    # -- from start to stop -------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the ticket worker and the naive child; on leaving, finish what was taken in."""
        self._worker = asyncio.create_task(self.desk.work())
        if self.child is not None:
            await self.child.start()
            if not self.child.limit_bytes:
                await choose_limit(self.child, self.topics.labels)
        try:
            yield
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Refuse the new, finish the old within the grace, leave no child behind."""
        grace_s = self.settings.server.drain_grace_s
        self.desk.close()
        await self.lane.drain(grace_s)
        if self._worker is not None:
            await asyncio.wait({self._worker}, timeout=1.0)
            self._worker.cancel()
        if self.child is not None:
            await self.child.stop()
        if self.tracer is not None:
            await self.tracer.close()
