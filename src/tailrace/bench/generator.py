"""Sends one block of a case: open loops by the clock, whatever comes back; closed loops one by one.

The intended start of a request is fixed before it is sent and never moved; what was not sent is not made up.
Knows nothing of folders, cases and verdicts.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tailrace.bench.alarm import Alarm
from tailrace.bench.arrivals import Arrival, arrivals
from tailrace.bench.errors import NoAnswer
from tailrace.bench.lag import Lag, watched
from tailrace.bench.scenario import REQUESTS_MAX, LoadTable
from tailrace.bench.units import Amount
from tailrace.latency.exchange import now_ns
from tailrace.latency.measure import Moment, measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.port import Target
from tailrace.wire.record import Row

IN_FLIGHT_MAX = 10_000
"""The most requests on their way: a server that far behind is not measured but buried."""
FAILED_MAX = 20
"""So many failures before the first answer end the run."""
NS = 1_000_000_000


@dataclass(slots=True)
class Sent:
    """What one block came to."""

    zero_ns: int = 0
    """The moment from which the rows count their seconds."""
    began_ns: int = 0
    ended_ns: int = 0
    """When the last request was sent; answers may have come later."""
    steady_ns: int = 0
    """From when on requests count."""
    offered: int = 0
    """How many steady requests were meant to be sent; for a closed loop, how many were."""
    on_time: int = 0
    """How many of these were begun before the block's planned end."""
    lag: Lag = field(default_factory=Lag)

    @property
    def steady_s(self) -> float:
        """How long the steady phase lasted."""
        return max(0.0, (self.ended_ns - self.steady_ns) / NS)


@dataclass(slots=True)
class Sender:
    """What sends a case's requests; keeps its connections from block to block."""

    pool: Pool
    target: Target
    load: LoadTable
    keep: Callable[[Row], None]
    """Takes every row as it comes."""
    zero_ns: int
    """The run's beginning, from which rows count their seconds."""
    pairs: Callable[[int], str]
    """What pairs request number n with that of another run."""
    index: int = 0
    inside: int = 0
    seen: int = 0
    answered: int = 0
    failed: str | None = None
    """What went wrong with the latest request."""

    async def block(self, number: int, sent: Sent | None = None) -> Sent:
        """Send one block and wait for its answers; `sent` is filled even where it is broken off.

        Raises:
            NoAnswer: nothing but failures came at first, or the server is hopelessly behind.
            BadScenario: the load cannot be sent.

        """
        sent = Sent() if sent is None else sent
        sent.zero_ns = self.zero_ns
        plan = [] if self.load.closed else arrivals(self.load, number)
        async with watched(lambda: self.inside) as lag:
            await asyncio.sleep(0.01)  # the first look, and the loop warm
            sent.began_ns = now_ns()
            try:
                if self.load.closed:
                    await self._closed(sent, number)
                else:
                    await self._open(sent, plan, number)
            finally:
                sent.ended_ns = sent.ended_ns or now_ns()
                sent.steady_ns = sent.steady_ns or sent.began_ns
                sent.lag = lag.within(sent.steady_ns, sent.ended_ns)
        return sent

    # -- open loop

    async def _open(self, sent: Sent, plan: list[Arrival], block: int) -> None:
        phases = Phases(self.load, plan[-1].at_s, len(plan))
        tasks: set[asyncio.Task[None]] = set()
        unix_s = time.time()
        try:
            with Alarm() as alarm:
                for number, arrival in enumerate(plan):
                    meant = sent.began_ns + round(arrival.at_s * NS)
                    await alarm.until(meant)
                    self._may_go_on()
                    phase = phases.of(number, arrival.at_s)
                    moment = self._moment(meant, unix_s + arrival.at_s, phase)
                    task = asyncio.create_task(self._one(moment, sent, block, arrival.step))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            length = self.load.length
            planned = length.value if length.unit == "s" else plan[-1].at_s
            sent.ended_ns = max(now_ns(), sent.began_ns + round(planned * NS))
            first = next(
                (a.at_s for n, a in enumerate(plan) if phases.of(n, a.at_s) == "steady"), 0.0
            )
            sent.steady_ns = sent.began_ns + round(max(first, phases.steady_from_s) * NS)
            while tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                self._may_go_on()
        finally:
            await _let_go(tasks)
        for number, arrival in enumerate(plan):
            sent.offered += phases.of(number, arrival.at_s) == "steady"

    # -- closed loop

    async def _closed(self, sent: Sent, block: int) -> None:
        steps = self.load.steps or (self.load.clients,)
        width_s = self.load.length.value / len(steps) if self.load.length.unit == "s" else None
        for number, clients in enumerate(steps):
            ends = None if width_s is None else sent.began_ns + round((number + 1) * width_s * NS)
            await self._clients(sent, block, clients, ends)
        sent.ended_ns = now_ns()
        sent.steady_ns = sent.steady_ns or sent.ended_ns

    async def _clients(self, sent: Sent, block: int, clients: int, ends_ns: int | None) -> None:
        load = self.load
        most = int(load.length.value) if load.length.unit == "req" else REQUESTS_MAX
        length_s = load.length.value if load.length.unit == "s" else None
        phases = Phases(load, length_s, most if length_s is None else None)
        unix_s = time.time() - (now_ns() - sent.began_ns) / NS
        step = float(clients) if load.steps else None
        count = 0

        async def client(number: int) -> None:
            nonlocal count
            chance = random.Random(f"{load.seed} {block} {number}")
            while count < most and (ends_ns is None or now_ns() < ends_ns):
                self._may_go_on()
                begun = now_ns()
                at_s = (begun - sent.began_ns) / NS
                phase = phases.of(count, at_s)
                if phase == "steady" and not sent.steady_ns:
                    sent.steady_ns = begun
                count += 1
                sent.offered += phase == "steady"
                await self._one(self._moment(begun, unix_s + at_s, phase), sent, block, step)
                if load.think.value:
                    await asyncio.sleep(chance.expovariate(1.0 / load.think.value))

        tasks = {asyncio.create_task(client(number)) for number in range(clients)}
        try:
            await asyncio.gather(*tasks)
        finally:
            await _let_go(tasks)

    # -- both

    def _moment(self, meant_ns: int, unix_s: float, phase: str) -> Moment:
        return Moment(meant_ns, (meant_ns - self.zero_ns) / NS, unix_s, phase)

    async def _one(self, moment: Moment, sent: Sent, block: int, step: float | None) -> None:
        index = self.index
        self.index += 1
        self.inside += 1
        try:
            timeout_s = self.load.timeout.value
            row = await measure(self.pool, self.target, index, moment, timeout_s=timeout_s)
        finally:
            self.inside -= 1
        told = {"block": block} if step is None else {"block": block, "step": step}
        row = replace(row, prompt=self.pairs(index), detail={**row.detail, **told})
        self._note(row, sent)
        self.keep(row)

    def _note(self, row: Row, sent: Sent) -> None:
        self.seen += 1
        self.answered += row.outcome in {"ok", "refused", "timeout"}
        if row.outcome == "error":
            self.failed = str(row.detail.get("error") or f"status {row.status}")
        if row.phase == "steady":
            sched = row.parts.get("sched")
            begun_s = row.at_s + (sched.ms / 1000 if sched is not None else 0.0)
            ends_s = (sent.ended_ns - self.zero_ns) / NS if sent.ended_ns else begun_s
            sent.on_time += begun_s <= ends_s

    def _may_go_on(self) -> None:
        if self.inside >= IN_FLIGHT_MAX:
            raise NoAnswer(
                f"{IN_FLIGHT_MAX:,} requests are waiting for an answer: the server cannot keep up "
                "with this load; offer less"
            )
        if self.seen >= FAILED_MAX and not self.answered:
            raise NoAnswer(f"none of the first {self.seen} requests was answered: {self.failed}")


class Phases:
    """Which phase a request belongs to, by its number and its moment in the block."""

    def __init__(self, load: LoadTable, length_s: float | None, count: int | None) -> None:
        self._cold = load.cold
        self._steady_number = 0
        self.steady_from_s = 0.0
        if load.cold.unit == "req":
            self._steady_number = int(load.cold.value)
        else:
            self.steady_from_s = load.cold.value
        warm = load.warm_up
        if warm.unit == "%" and load.length.unit == "s" and length_s is not None:
            warm = Amount(warm.value / 100 * length_s, "s")
        elif warm.unit == "%":
            warm = Amount(float(int(warm.value / 100 * (count or 0))), "req")
        if warm.unit == "s":
            self.steady_from_s += warm.value
        else:
            self._steady_number += int(warm.value)

    def of(self, number: int, at_s: float) -> str:
        """cold, warm-up or steady."""
        cold = self._cold
        if number < cold.value if cold.unit == "req" else at_s < cold.value:
            return "cold"
        if number < self._steady_number or at_s < self.steady_from_s:
            return "warm-up"
        return "steady"


async def _let_go(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
