"""A ledger against a list: whatever order tickets are entered, claimed, finished and returned in."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.core.errors import ModelError
from tailrace.tickets.memory import MemoryLedger
from tailrace.tickets.port import TRANSITIONS, Claim, Outcome, State, TicketExpired

KEEP_S = 50.0
KEPT_MAX = 4
LEASE_S = 10.0


class LedgerAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = MemoryLedger(keep_s=KEEP_S, kept_max=KEPT_MAX)
        self.now = 100.0
        self.order: list[str] = []
        """Every ticket, in order of submission."""
        self.state: dict[str, State] = {}
        self.cost: dict[str, float] = {}
        self.ended: list[tuple[str, float, Any]] = []
        """Finished tickets in order: id, when, result."""
        self.claims: list[Claim] = []
        """Every claim ever made."""
        self.held: dict[str, Claim] = {}
        """The newest claim of each running ticket."""

    def line(self) -> list[str]:
        return [t for t in self.order if self.state[t] is State.QUEUED]

    def move(self, ticket_id: str, after: State) -> None:
        before = self.state.get(ticket_id)
        assert after in TRANSITIONS[before], f"{before} to {after}"
        self.state[ticket_id] = after

    def forget_old(self) -> None:
        while self.ended and (len(self.ended) > KEPT_MAX or self.ended[0][1] + KEEP_S <= self.now):
            self.ended.pop(0)

    def return_overdue(self) -> None:
        for ticket_id, claim in list(self.held.items()):
            if claim.until < self.now:
                self.move(ticket_id, State.QUEUED)
                del self.held[ticket_id]

    def sweep_model(self) -> None:
        self.return_overdue()
        self.forget_old()

    @rule(seconds=st.sampled_from([0.0, 1.0, 7.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(cost=st.floats(1.0, 9.0))
    def submit(self, cost: float) -> None:
        ticket = self.ledger.submit({"cost": cost}, cost, self.now)
        assert ticket.id not in self.state
        assert (ticket.state, ticket.submitted) == (State.QUEUED, self.now)
        self.order.append(ticket.id)
        self.cost[ticket.id] = cost
        self.move(ticket.id, State.QUEUED)

    @rule()
    def submit_known(self) -> None:
        ticket = self.ledger.submit("body", 0.0, self.now, Outcome(result="known"))
        self.order.append(ticket.id)
        self.cost[ticket.id] = 0.0
        self.move(ticket.id, State.DONE)
        assert (ticket.state, ticket.result) == (State.DONE, "known")
        self.ended.append((ticket.id, self.now, "known"))
        self.sweep_model()

    @rule()
    def claim(self) -> None:
        claim = self.ledger.claim(self.now, LEASE_S)
        line = self.line()
        if not line:
            assert claim is None
            return
        assert claim is not None
        assert claim.ticket.id == line[0]
        assert claim.ticket.state is State.RUNNING
        assert claim.until == self.now + LEASE_S
        assert all(claim.token != c.token for c in self.claims if c.ticket.id == line[0])
        self.move(line[0], State.RUNNING)
        self.claims.append(claim)
        self.held[line[0]] = claim

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), failed=st.booleans())
    def finish(self, data: st.DataObject, failed: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        outcome = Outcome(error=ModelError("no")) if failed else Outcome(result=claim.token)
        newest = self.held.get(claim.ticket.id) is claim
        assert self.ledger.finish(claim.ticket.id, claim.token, outcome, self.now) is newest
        if newest:
            self.move(claim.ticket.id, State.FAILED if failed else State.DONE)
            del self.held[claim.ticket.id]
            self.ended.append((claim.ticket.id, self.now, outcome.result))
            self.sweep_model()

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        newest = self.held.get(claim.ticket.id) is claim
        assert self.ledger.release(claim.ticket.id, claim.token) is newest
        if newest:
            self.move(claim.ticket.id, State.QUEUED)
            del self.held[claim.ticket.id]

    @rule()
    def sweep(self) -> None:
        self.ledger.sweep(self.now)
        self.sweep_model()

    @invariant()
    def places_are_exact(self) -> None:
        line = self.line()
        assert self.ledger.waiting() == [self.cost[t] for t in line]
        for place, ticket_id in enumerate(line):
            ahead = self.ledger.ahead(ticket_id)
            assert ahead == [self.cost[t] for t in line[:place]]
        for ticket_id in self.state:
            if ticket_id not in line:
                assert self.ledger.ahead(ticket_id) is None

    @invariant()
    def every_ticket_is_where_the_list_says(self) -> None:
        kept = {ticket_id: result for ticket_id, _, result in self.ended}
        for ticket_id, state in self.state.items():
            if state in {State.DONE, State.FAILED} and ticket_id not in kept:
                try:
                    self.ledger.get(ticket_id)
                except TicketExpired:
                    continue
                raise AssertionError("kept for too long")
            ticket = self.ledger.get(ticket_id)
            assert ticket.state is state
            if state is State.DONE:
                assert ticket.result == kept[ticket_id]

    @invariant()
    def counts_are_exact(self) -> None:
        counts = self.ledger.counts()
        kept = {ticket_id for ticket_id, *_ in self.ended}
        for state in State:
            expected = sum(
                s is state and (s in {State.QUEUED, State.RUNNING} or t in kept)
                for t, s in self.state.items()
            )
            assert counts[state] == expected


LedgerAgainstList.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestLedgerAgainstList = LedgerAgainstList.TestCase
