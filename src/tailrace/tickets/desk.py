"""The desk: takes tickets in, tells place and expected time, and has one worker bring them to the lane.

Knows ledgers only by their port, and nothing of HTTP.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from tailrace.core.admission import AllOf, LaneView
from tailrace.core.clock import Clock
from tailrace.core.errors import Draining, LaneFull, TailraceError
from tailrace.core.estimate import start_in_s
from tailrace.core.events import Admitted, TicketMoved
from tailrace.core.lane import ON_MODEL, Lane
from tailrace.core.work import Stamps, Work
from tailrace.tickets.port import Claim, Ledger, Outcome, State, Ticket

log = logging.getLogger(__name__)

LANE_FULL_PAUSE_S = 0.05
"""How soon a ticket that the lane had no seat for is brought to it again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a ticket stands: how many go first (0 = next), and when its answer is expected."""

    ahead: int | None
    eta_s: float | None


class Desk:
    """Tickets of one door over one lane.

    `lease_s` must exceed the longest run; `sweep_every_s` is how often old results are dropped;
    `answered` is told body and result of every ticket that the lane answered; `finished` the parts of every
    one that came to its end and the code of what went wrong, in the context of who handed it in.
    """

    def __init__(
        self,
        door: str,
        ledger: Ledger,
        lane: Lane,
        admission: AllOf,
        *,
        clock: Clock,
        lease_s: float = 600.0,
        sweep_every_s: float = 5.0,
        answered: Callable[[Any, Any], None] | None = None,
        finished: Callable[[Stamps, str], None] | None = None,
    ) -> None:
        self.door = door
        self.ledger = ledger
        self.admission = admission
        self._lane = lane
        self._clock = clock
        self._lease_s = lease_s
        self._sweep_every_s = sweep_every_s
        self._answered = answered
        self._finished = finished
        self._contexts: dict[str, Context] = {}
        """What was said of who handed in a ticket that waits; those of an earlier start have none."""
        self._arrived = asyncio.Event()
        self._closing = False
        self._running: tuple[Ticket, Work] | None = None

    def view(self, work: Work | None = None) -> LaneView:
        """The line as a policy of this door sees it: the tickets that wait, not the lane's seats."""
        tickets, lane = self.ledger.waiting(), self._lane.view(work)
        return replace(
            lane,
            waiting=len(tickets),
            free=0 if tickets or self._running else lane.free,
            start_in_s=self._start_in_s(tickets),
        )

    def submit(
        self, body: Any, cost: float, stamps: Stamps, caller: str = "", deadline: float = inf
    ) -> Ticket:
        """Take a ticket in at the end of the line, if the policies agree.

        `caller` is who asks, for policies that count by caller; `deadline` is judged at the door only: a
        ticket that was taken in is answered, however late.

        Raises:
            Rejected: by a policy, or while the box is shutting down.

        """
        if self._closing:
            raise Draining
        work = Work(body, stamps, door=self.door, cost=cost, caller=caller, deadline=deadline)
        latest_start = self.admission.admit(work, self.view(work))
        ticket = self.ledger.submit(body, cost, self._clock.now(), latest_start=latest_start)
        self._contexts[ticket.id] = copy_context()
        self._lane.events.emit(Admitted(self._lane.name, self.door))
        self._lane.events.emit(TicketMoved(None, State.QUEUED))
        self._arrived.set()
        return ticket

    def submit_known(self, body: Any, result: Any) -> Ticket:
        """A ticket whose answer is known already: born done."""
        ticket = self.ledger.submit(body, 0.0, self._clock.now(), Outcome(result=result))
        self._lane.events.emit(TicketMoved(None, State.DONE))
        return ticket

    def place(self, ticket: Ticket) -> Place:
        """Where the ticket stands now; a finished one has no place and no time to wait."""
        service_s = self._lane.service.seconds(ticket.cost)
        ahead = self.ledger.ahead(ticket.id)
        if ahead is not None:
            return Place(len(ahead), self._start_in_s(ahead) + service_s)
        if self._running is not None and self._running[0].id == ticket.id:
            return Place(None, self._running_eta_s(service_s))
        return Place(None, None)

    def _running_eta_s(self, service_s: float) -> float:
        assert self._running is not None
        work = self._running[1]
        for other, boarded in self._lane.line():
            if other is work and boarded:
                return min(self._lane.free_in_s())
        return start_in_s(self._lane.free_in_s(), self._lane.ahead_s(work)) + service_s

    def _start_in_s(self, ahead: list[float]) -> float:
        """When a ticket would start that has tickets of these costs before it.

        One worker brings one ticket at a time to the lane, so the tickets follow one another even where
        the lane has more slots than one.
        """
        free = self._lane.free_in_s()
        first = start_in_s(free, self._lane.ahead_s())
        if self._running is not None:
            first = max(first, *free)
        return first + sum(self._lane.service.seconds(cost) for cost in ahead)

    # -- the worker ---------------------------------------------------------------------------

    async def work(self) -> None:
        """Bring tickets to the lane, one at a time, until `close` was called."""
        while not self._closing:
            self.ledger.sweep(self._clock.now())
            claim = self.ledger.claim(self._clock.now(), self._lease_s)
            if claim is not None:
                await self._serve(claim)
            else:
                await self._wait()
        if left := len(self.ledger.waiting()):
            log.warning("%d tickets were waiting when the box stopped", left)

    async def _wait(self) -> None:
        self._arrived.clear()
        try:
            async with asyncio.timeout(self._sweep_every_s):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _serve(self, claim: Claim) -> None:
        ticket, events = claim.ticket, self._lane.events
        events.emit(TicketMoved(State.QUEUED, State.RUNNING))
        work = Work(ticket.body, Stamps(ticket.submitted), door=self.door, cost=ticket.cost)
        self._running = (ticket, work)
        try:
            outcome = Outcome(result=await self._lane.do(work, ticket.latest_start))
        except (LaneFull, Draining):
            # The lane, not the ticket, is at its end: it was taken in and keeps its place.
            if self.ledger.release(ticket.id, claim.token):
                events.emit(TicketMoved(State.RUNNING, State.QUEUED))
            await asyncio.sleep(LANE_FULL_PAUSE_S)
            return
        except TailraceError as error:
            outcome = Outcome(error=error)
        finally:
            self._running = None
        if self._answered is not None and outcome.error is None:
            self._answered(ticket.body, outcome.result)
        self._tell(ticket, work.stamps, outcome.error)
        parts = work.stamps.parts()
        outcome = replace(
            outcome,
            waited_s=parts.get("wait", 0.0) + parts.get("batch", 0.0),
            service_s=sum(parts.get(part, 0.0) for part in ON_MODEL),
        )
        if self.ledger.finish(ticket.id, claim.token, outcome, self._clock.now()):
            after = State.DONE if outcome.error is None else State.FAILED
            events.emit(TicketMoved(State.RUNNING, after))
        else:
            log.warning("ticket %s was finished too late: another claim is newer", ticket.id)

    def _tell(self, ticket: Ticket, stamps: Stamps, error: TailraceError | None) -> None:
        context = self._contexts.pop(ticket.id, None) or copy_context()
        if self._finished is not None:
            context.run(self._finished, stamps, "" if error is None else error.code)

    def close(self) -> None:
        """Refuse new tickets; `work` returns when the one on the model is finished.

        Those that wait stay in the ledger: a durable one brings them to the next start.
        """
        self._closing = True
        self._arrived.set()
