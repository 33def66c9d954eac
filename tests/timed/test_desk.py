"""The ticket desk on a virtual clock: the line, the expected times, and one worker behind it."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tailrace.core.admission import AllOf
from tailrace.core.batch import BatchRule
from tailrace.core.errors import Draining, InputError, LaneFull, RateLimited
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Event, Events, TicketMoved
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.rate_limit import RateLimit
from tailrace.policies.waiting_room import WaitingRoom
from tailrace.simulate.virtual import VirtualLoop, run_virtual
from tailrace.tickets.desk import Desk
from tailrace.tickets.memory import MemoryLedger
from tailrace.tickets.port import State, Ticket, TicketExpired, TicketUnknown


class Office:
    """A desk over a lane whose model takes its cost in seconds."""

    def __init__(
        self,
        clock: VirtualLoop,
        *,
        keep_s: float = 3600.0,
        policies: Sequence[Any] = (WaitingRoom(20),),
        **lane: Any,
    ) -> None:
        self.clock = clock
        self.order: list[Any] = []
        self.seen: list[Event] = []
        events = Events()
        events.subscribe(self.seen.append)
        service = ServiceTime(1.0, 1.0)
        self.lane = Lane("review", self.run, clock=clock, service=service, events=events, **lane)
        self.desk = Desk(
            "queue", MemoryLedger(keep_s=keep_s), self.lane, AllOf(policies), clock=clock
        )

    async def run(self, payloads: Sequence[Any], run: Run) -> list[Any]:
        self.order += [text for text, _ in payloads]
        run.mark("tokenize")
        await asyncio.sleep(sum(seconds for _, seconds in payloads))
        run.mark("infer")
        run.mark("post")
        return [ValueError(text) if text == "bad" else f"read {text}" for text, _ in payloads]

    def submit(self, text: str = "x", seconds: float = 1.0, caller: str = "") -> Ticket:
        stamps = Stamps(self.clock.now())
        return self.desk.submit((text, seconds), seconds, stamps, caller)

    async def ended(self, ticket: Ticket) -> Ticket:
        while self.desk.ledger.get(ticket.id).finished is None:  # noqa: ASYNC110 - as a client does
            await asyncio.sleep(0.01)
        return self.desk.ledger.get(ticket.id)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Office"]:
        worker = asyncio.create_task(self.desk.work())
        try:
            yield self
        finally:
            self.desk.close()
            await worker


def test_tickets_are_served_in_the_order_of_their_numbers() -> None:
    async def main(clock: VirtualLoop) -> list[Any]:
        async with Office(clock).open() as office:
            tickets = [office.submit(str(i)) for i in range(8)]
            for ticket in tickets:
                await office.ended(ticket)
            return office.order

    assert run_virtual(main) == [str(i) for i in range(8)]


def test_the_first_in_line_has_place_nought_and_the_one_on_the_model_has_none() -> None:
    async def main(clock: VirtualLoop) -> list[list[int | None]]:
        async with Office(clock).open() as office:
            tickets = [office.submit() for _ in range(3)]
            seen = [[office.desk.place(t).ahead for t in tickets]]
            for _ in range(3):
                await asyncio.sleep(0.5)
                seen.append([office.desk.place(t).ahead for t in tickets])
                await asyncio.sleep(0.5)
            return seen

    assert run_virtual(main) == [[0, 1, 2], [None, 0, 1], [None, None, 0], [None, None, None]]


@pytest.mark.parametrize("count", [1, 5, 20])
@pytest.mark.parametrize("seconds", [0.05, 1.0, 3.0])
def test_the_time_promised_at_submit_is_kept(count: int, seconds: float) -> None:
    async def main(clock: VirtualLoop) -> list[tuple[float, float]]:
        async with Office(clock).open() as office:
            await office.ended(office.submit(seconds=seconds))
            began = clock.now()
            tickets = [office.submit(seconds=seconds) for _ in range(count)]
            promised = [office.desk.place(ticket).eta_s for ticket in tickets]
            ends = [await office.ended(ticket) for ticket in tickets]
            return [
                (p or 0.0, (e.finished or 0.0) - began)
                for p, e in zip(promised, ends, strict=False)
            ]

    for promised, real in run_virtual(main):
        assert abs(promised - real) <= max(0.3, 0.2 * real)


def test_the_promise_counts_how_long_each_text_before_it_takes() -> None:
    async def main(clock: VirtualLoop) -> tuple[float, float]:
        async with Office(clock).open() as office:
            for seconds in (1.0, 2.0, 4.0, 1.0, 2.0):
                await office.ended(office.submit(seconds=seconds))
            began = clock.now()
            for seconds in (5.0, 0.5, 3.0, 0.5):
                office.submit(seconds=seconds)
            last = office.submit(seconds=2.0)
            promised = office.desk.place(last).eta_s
            return promised or 0.0, ((await office.ended(last)).finished or 0.0) - began

    promised, real = run_virtual(main)
    assert real == pytest.approx(11.0)
    assert promised == pytest.approx(real, rel=0.05)


def test_the_promise_counts_the_work_of_other_doors_that_is_already_in_the_lane() -> None:
    async def main(clock: VirtualLoop) -> tuple[float, float]:
        async with Office(clock).open() as office:
            others = [
                office.lane.submit(Work(("other", 1.0), Stamps(clock.now()))) for _ in range(4)
            ]
            ticket = office.submit()
            promised = office.desk.place(ticket).eta_s
            done = await office.ended(ticket)
            await asyncio.gather(*others)
            return promised or 0.0, done.finished or 0.0

    promised, real = run_virtual(main)
    assert real == pytest.approx(5.0, abs=0.02)
    assert promised == pytest.approx(real, rel=0.2)


def test_a_claimed_ticket_in_the_lane_is_not_charged_for_those_who_came_after_it() -> None:
    async def main(clock: VirtualLoop) -> tuple[float, float]:
        async with Office(clock).open() as office:
            first = office.lane.submit(Work(("other", 1.0), Stamps(clock.now())))
            ticket = office.submit()
            await asyncio.sleep(0.01)
            later = [
                office.lane.submit(Work(("later", 1.0), Stamps(clock.now()))) for _ in range(5)
            ]
            asked, promised = clock.now(), office.desk.place(ticket).eta_s
            done = await office.ended(ticket)
            await asyncio.gather(first, *later)
            return promised or 0.0, (done.finished or 0.0) - asked

    promised, real = run_virtual(main)
    assert promised == pytest.approx(real, rel=0.2)


def test_the_expected_time_falls_while_a_ticket_waits_and_runs() -> None:
    async def main(clock: VirtualLoop) -> list[float]:
        async with Office(clock).open() as office:
            office.submit(seconds=1.0)
            ticket = office.submit(seconds=1.0)
            seen = []
            for _ in range(8):
                seen.append(office.desk.place(ticket).eta_s or 0.0)
                await asyncio.sleep(0.2)
            return seen

    seen = run_virtual(main)
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(seen))
    assert seen[0] == pytest.approx(2.0)


def test_more_than_twenty_waiting_are_refused() -> None:
    async def main(clock: VirtualLoop) -> tuple[int, int]:
        async with Office(clock).open() as office:
            office.submit()
            await asyncio.sleep(0.01)
            refused = 0
            for _ in range(25):
                try:
                    office.submit()
                except LaneFull:
                    refused += 1
            return refused, len(office.desk.ledger.waiting())

    assert run_virtual(main) == (5, 20)


def test_a_refusal_leaves_no_ticket_behind() -> None:
    async def main(clock: VirtualLoop) -> int:
        async with Office(clock, policies=[WaitingRoom(0)]).open() as office:
            office.submit()
            await asyncio.sleep(0.01)
            with pytest.raises(LaneFull):
                office.submit()
            return sum(office.desk.ledger.counts().values())

    assert run_virtual(main) == 1


def test_each_caller_has_its_own_allowance_at_the_desk() -> None:
    async def main(clock: VirtualLoop) -> list[str]:
        async with Office(clock, policies=[RateLimit(0.1, 2)]).open() as office:
            ends = []
            for caller in ("ann", "ann", "ann", "bob", "bob", "bob"):
                try:
                    office.submit(caller=caller)
                    ends.append("in")
                except RateLimited:
                    ends.append("refused")
            return ends

    assert run_virtual(main) == ["in", "in", "refused", "in", "in", "refused"]


def test_an_answer_that_is_known_is_born_done_and_waits_for_nobody() -> None:
    async def main(clock: VirtualLoop) -> tuple[Ticket, float, list[Any]]:
        async with Office(clock).open() as office:
            office.submit()
            ticket = office.desk.submit_known("text", "known")
            place = office.desk.place(ticket)
            assert (place.ahead, place.eta_s) == (None, None)
            return office.desk.ledger.get(ticket.id), clock.now(), office.order

    ticket, at, _ = run_virtual(main)
    assert (ticket.state, ticket.result, at) == (State.DONE, "known", 0.0)


def test_results_expire_after_their_time_even_if_nothing_happens_meanwhile() -> None:
    async def main(clock: VirtualLoop) -> Ticket:
        async with Office(clock, keep_s=60.0).open() as office:
            ticket = office.submit()
            await office.ended(ticket)
            await asyncio.sleep(50.0)
            kept = office.desk.ledger.get(ticket.id)
            await asyncio.sleep(20.0)
            with pytest.raises(TicketExpired):
                office.desk.ledger.get(ticket.id)
            with pytest.raises(TicketUnknown):
                office.desk.ledger.get("never given out")
            return kept

    assert run_virtual(main).state is State.DONE


def test_a_failing_model_fails_its_ticket_and_the_next_one_is_served() -> None:
    async def main(clock: VirtualLoop) -> list[Ticket]:
        async with Office(clock).open() as office:
            tickets = [office.submit(text) for text in ("good", "bad", "good again")]
            return [await office.ended(ticket) for ticket in tickets]

    first, second, third = run_virtual(main)
    assert [t.state for t in (first, second, third)] == [State.DONE, State.FAILED, State.DONE]
    assert second.error is not None
    assert second.error.code == "model-failed"
    assert third.result == "read good again"


def test_a_bad_input_found_by_the_model_keeps_its_own_code() -> None:
    async def main(clock: VirtualLoop) -> str:
        async def picky(payloads: Sequence[Any], run: Run) -> list[Any]:
            return [InputError("not to my taste") for _ in payloads]

        office = Office(clock)
        office.lane._run = picky
        async with office.open():
            ticket = await office.ended(office.submit())
        assert ticket.error is not None
        return ticket.error.code

    assert run_virtual(main) == "invalid-input"


def test_a_lane_that_is_full_of_others_delays_a_ticket_but_never_loses_it() -> None:
    async def main(clock: VirtualLoop) -> Ticket:
        office = Office(clock, waiting_max=2)
        async with office.open():
            others = [
                office.lane.submit(Work(("other", 1.0), Stamps(clock.now()))) for _ in range(3)
            ]
            ticket = await office.ended(office.submit())
            await asyncio.gather(*others)
            return ticket

    ticket = run_virtual(main)
    assert ticket.state is State.DONE
    assert ticket.result == "read x"


def test_a_ticket_that_outwaits_the_doors_queue_timeout_fails_with_its_code() -> None:
    async def main(clock: VirtualLoop) -> tuple[Ticket, Ticket]:
        policies = [WaitingRoom(20), QueueTimeoutPolicy(2.5)]
        async with Office(clock, policies=policies).open() as office:
            tickets = [office.submit() for _ in range(5)]
            ends = [await office.ended(ticket) for ticket in tickets]
            return ends[2], ends[4]

    in_time, late = run_virtual(main)
    assert in_time.state is State.DONE
    assert late.state is State.FAILED
    assert late.error is not None
    assert late.error.code == "queue-timeout"


def test_waited_and_served_add_up_to_the_tickets_life() -> None:
    async def main(clock: VirtualLoop) -> list[Ticket]:
        async with Office(clock, batch=BatchRule(8, window_s=0.025)).open() as office:
            tickets = [office.submit(seconds=0.7) for _ in range(3)]
            return [await office.ended(ticket) for ticket in tickets]

    for place, ticket in enumerate(run_virtual(main)):
        assert ticket.waited_s == pytest.approx(place * 0.7, abs=1e-6)
        assert ticket.service_s == pytest.approx(0.7, abs=1e-6)
        assert ticket.waited_s + ticket.service_s == pytest.approx(
            (ticket.finished or 0.0) - ticket.submitted
        )


def test_a_closed_desk_finishes_the_ticket_on_the_model_and_takes_no_more() -> None:
    async def main(clock: VirtualLoop) -> tuple[State, State, float]:
        office = Office(clock)
        worker = asyncio.create_task(office.desk.work())
        first, second = office.submit(), office.submit()
        await asyncio.sleep(0.5)
        office.desk.close()
        with pytest.raises(Draining):
            office.submit()
        await worker
        ledger = office.desk.ledger
        return ledger.get(first.id).state, ledger.get(second.id).state, clock.now()

    assert run_virtual(main) == (State.DONE, State.QUEUED, pytest.approx(1.0))


def test_every_move_of_a_ticket_is_told_once_and_in_order() -> None:
    async def main(clock: VirtualLoop) -> list[tuple[str | None, str]]:
        async with Office(clock).open() as office:
            await office.ended(office.submit())
            await office.ended(office.submit("bad"))
            return [(e.before, e.after) for e in office.seen if isinstance(e, TicketMoved)]

    life = [(None, "queued"), ("queued", "running")]
    assert run_virtual(main) == [*life, ("running", "done"), *life, ("running", "failed")]
