"""What the house asks of a ledger of tickets: protocol, states and data only.

The ledger is the truth about who asked for what, in which order, and what became of it. Workers claim
tickets for a time; a claim's token makes finishing a compare-and-set.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any, Protocol

from tailrace.core.errors import TailraceError


class State(StrEnum):
    """Where a ticket is on its way; `TRANSITIONS` says which way it may go."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


TRANSITIONS: dict[State | None, frozenset[State]] = {
    None: frozenset({State.QUEUED, State.DONE}),
    State.QUEUED: frozenset({State.RUNNING}),
    State.RUNNING: frozenset({State.QUEUED, State.DONE, State.FAILED}),
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
}
"""From state to states; None is a ticket that does not exist yet (one whose answer is known is born done)."""


class TicketError(TailraceError):
    """Something is wrong with this ticket."""

    code = "ticket-error"


class TicketUnknown(TicketError):
    """There is no ticket of this number; a restart of the box loses the line."""

    code = "ticket-unknown"


class TicketExpired(TicketError):
    """This ticket's result was kept for its time and then dropped."""

    code = "ticket-expired"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A still picture of one ticket; times are seconds of the house's clock."""

    id: str
    body: Any
    cost: float
    state: State
    submitted: float
    latest_start: float = inf
    """The moment after which the ticket fails instead of being started."""
    finished: float | None = None
    result: Any = None
    error: TailraceError | None = None
    waited_s: float | None = None
    """Submitted to started on the model."""
    service_s: float | None = None
    """Time on the model."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's time-limited hold of a ticket; `token` fences off whoever held it before."""

    ticket: Ticket
    token: int
    until: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a claimed ticket: a result or an error, and the times of the way."""

    result: Any = None
    error: TailraceError | None = None
    waited_s: float = 0.0
    service_s: float = 0.0


class Ledger(Protocol):
    """Tickets in order of submission. Every method is atomic."""

    def submit(
        self,
        body: Any,
        cost: float,
        now: float,
        outcome: Outcome | None = None,
        latest_start: float = inf,
    ) -> Ticket:
        """Enter a ticket at the end of the line, or as done where the outcome is known already."""

    def claim(self, now: float, lease_s: float) -> Claim | None:
        """Take the head of the line for `lease_s` seconds; None where nobody waits."""

    def finish(self, ticket_id: str, token: int, outcome: Outcome, now: float) -> bool:
        """End a claimed ticket; False, and no effect, where the token is no longer the newest."""

    def release(self, ticket_id: str, token: int) -> bool:
        """Give a claimed ticket its old place in the line back; False as for `finish`."""

    def get(self, ticket_id: str) -> Ticket:
        """The ticket as it is now; raises TicketUnknown or TicketExpired."""

    def ahead(self, ticket_id: str) -> list[float] | None:
        """The costs of the queued tickets before this one, in order; None unless it is queued."""

    def waiting(self) -> list[float]:
        """The costs of all queued tickets, in order."""

    def counts(self) -> dict[State, int]:
        """How many tickets are in each state."""

    def sweep(self, now: float) -> None:
        """Return tickets whose lease ran out to the line; drop results kept for long enough."""
