"""A probe: some requests one after the other, or at a steady rate whatever the answers do; rows as they end.

At a rate the intended start is kept: who is late is late in `sched`. Small on purpose; load is bench's.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from tailrace.latency.exchange import now_ns
from tailrace.latency.measure import Moment, measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.port import Target
from tailrace.wire.record import Row

REQUESTS_MAX = 100_000
"""The most requests of one probe."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is asked, how often."""

    n: int = 20
    """Requests that count."""
    cold: int = 1
    """Requests before them, one after the other, kept apart."""
    rate: float | None = None
    """Requests per second, evenly spaced; None sends the next one when the last is answered."""
    timeout_s: float = 60.0
    fresh: bool = False
    """A connection of its own for every request."""


async def probe(pool: Pool, target: Target, plan: Plan) -> AsyncGenerator[Row, None]:
    """The rows, in the order in which they end; closing the generator gives up what is on its way."""
    run = _Run(pool, target, plan, now_ns(), time.time())
    for index in range(plan.cold):
        yield await run.one(index, now_ns(), "cold")
    if plan.rate is None:
        for index in range(plan.cold, plan.cold + plan.n):
            yield await run.one(index, now_ns(), "steady")
        return
    async for row in _at_a_rate(run, plan.rate):
        yield row


@dataclass(frozen=True, slots=True)
class _Run:
    pool: Pool
    target: Target
    plan: Plan
    began_ns: int
    began_unix: float

    async def one(self, index: int, intended_ns: int, phase: str) -> Row:
        at_s = (intended_ns - self.began_ns) / 1e9
        return await measure(
            self.pool,
            self.target,
            index,
            Moment(intended_ns, at_s, self.began_unix + at_s, phase),
            timeout_s=self.plan.timeout_s,
            fresh=self.plan.fresh,
        )


async def _at_a_rate(run: _Run, rate: float) -> AsyncGenerator[Row, None]:
    plan, done = run.plan, asyncio.Queue[Row | BaseException]()
    tasks: set[asyncio.Task[None]] = set()
    start = now_ns()

    async def send(index: int, intended_ns: int) -> None:
        try:
            done.put_nowait(await run.one(index, intended_ns, "steady"))
        except Exception as error:  # noqa: BLE001 - it is raised where the rows are read
            done.put_nowait(error)

    async def schedule() -> None:
        for number in range(plan.n):
            intended_ns = start + round(number * 1e9 / rate)
            await asyncio.sleep(max(0.0, (intended_ns - now_ns()) / 1e9))
            task = asyncio.create_task(send(plan.cold + number, intended_ns))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    scheduling = asyncio.create_task(schedule())
    try:
        for _ in range(plan.n):
            ended = await done.get()
            if isinstance(ended, BaseException):
                raise ended
            yield ended
    finally:
        for task in [scheduling, *tasks]:
            task.cancel()
        await asyncio.gather(scheduling, *tasks, return_exceptions=True)
