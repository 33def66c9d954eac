"""The ledger in memory: exact, and gone with the process. The reference for every other adapter."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from tailrace.tickets.port import (
    Claim,
    Outcome,
    State,
    Ticket,
    TicketExpired,
    TicketUnknown,
)


@dataclass(slots=True)
class _Entry:
    ticket: Ticket
    number: int
    token: int = 0
    until: float = 0.0


class MemoryLedger:
    """Keeps results for `keep_s` seconds and at most `kept_max` of them, whichever ends first."""

    def __init__(self, keep_s: float = 3600.0, kept_max: int = 1000) -> None:
        self._keep_s = keep_s
        self._kept_max = kept_max
        self._entries: dict[str, _Entry] = {}
        self._line: OrderedDict[str, None] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._expired: OrderedDict[str, None] = OrderedDict()
        self._number = 0

    def submit(
        self,
        body: Any,
        cost: float,
        now: float,
        outcome: Outcome | None = None,
        latest_start: float = inf,
    ) -> Ticket:
        """Enter a ticket; its number cannot be guessed."""
        ticket = Ticket(secrets.token_urlsafe(16), body, cost, State.QUEUED, now, latest_start)
        self._number += 1
        self._entries[ticket.id] = entry = _Entry(ticket, self._number)
        if outcome is None:
            self._line[ticket.id] = None
        else:
            self._end(entry, outcome, now)
        return entry.ticket

    def claim(self, now: float, lease_s: float) -> Claim | None:
        """Take the head of the line."""
        if not self._line:
            return None
        ticket_id, _ = self._line.popitem(last=False)
        entry = self._entries[ticket_id]
        entry.ticket = replace(entry.ticket, state=State.RUNNING)
        entry.token += 1
        entry.until = now + lease_s
        return Claim(entry.ticket, entry.token, entry.until)

    def finish(self, ticket_id: str, token: int, outcome: Outcome, now: float) -> bool:
        """End a claimed ticket, if the token is still the newest."""
        entry = self._held(ticket_id, token)
        if entry is None:
            return False
        self._end(entry, outcome, now)
        return True

    def release(self, ticket_id: str, token: int) -> bool:
        """Give a claimed ticket its old place back, if the token is still the newest."""
        entry = self._held(ticket_id, token)
        if entry is None:
            return False
        self._return(entry)
        return True

    def get(self, ticket_id: str) -> Ticket:
        """The ticket as it is now."""
        if ticket_id in self._entries:
            return self._entries[ticket_id].ticket
        if ticket_id in self._expired:
            raise TicketExpired
        raise TicketUnknown

    def ahead(self, ticket_id: str) -> list[float] | None:
        """The costs of those who come first."""
        if ticket_id not in self._line:
            return None
        costs: list[float] = []
        for other in self._line:
            if other == ticket_id:
                break
            costs.append(self._entries[other].ticket.cost)
        return costs

    def waiting(self) -> list[float]:
        """The costs of all who wait."""
        return [self._entries[ticket_id].ticket.cost for ticket_id in self._line]

    def counts(self) -> dict[State, int]:
        """How many tickets are in each state."""
        counts = dict.fromkeys(State, 0)
        for entry in self._entries.values():
            counts[entry.ticket.state] += 1
        return counts

    def sweep(self, now: float) -> None:
        """Return overdue claims to the line and drop old results."""
        for entry in self._entries.values():
            if entry.ticket.state is State.RUNNING and entry.until < now:
                self._return(entry)
        while self._ended:
            oldest = next(iter(self._ended))
            finished = self._entries[oldest].ticket.finished or 0.0
            if len(self._ended) <= self._kept_max and finished + self._keep_s > now:
                break
            self._ended.popitem(last=False)
            del self._entries[oldest]
            self._expired[oldest] = None
        while len(self._expired) > 10 * self._kept_max:
            self._expired.popitem(last=False)

    def _held(self, ticket_id: str, token: int) -> _Entry | None:
        entry = self._entries.get(ticket_id)
        if entry is None or entry.token != token or entry.ticket.state is not State.RUNNING:
            return None
        return entry

    def _return(self, entry: _Entry) -> None:
        """Put a ticket back where it stood: before everybody who came later."""
        entry.ticket = replace(entry.ticket, state=State.QUEUED)
        entry.token += 1
        line = [*self._line, entry.ticket.id]
        line.sort(key=lambda ticket_id: self._entries[ticket_id].number)
        self._line = OrderedDict.fromkeys(line)

    def _end(self, entry: _Entry, outcome: Outcome, now: float) -> None:
        entry.ticket = replace(
            entry.ticket,
            state=State.DONE if outcome.error is None else State.FAILED,
            finished=now,
            result=outcome.result,
            error=outcome.error,
            waited_s=outcome.waited_s,
            service_s=outcome.service_s,
        )
        self._ended[entry.ticket.id] = None
        self.sweep(now)
