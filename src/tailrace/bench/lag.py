"""How late the sender's own event loop is, and how many requests are on their way, looked at regularly."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tailrace.bench.alarm import Alarm
from tailrace.latency.exchange import now_ns

EVERY_NS = 5_000_000
LOOKS_MAX = 1_000_000
"""The most looks that are kept."""


@dataclass(slots=True)
class Lag:
    """What was seen: moments, lateness in milliseconds, requests on their way."""

    at_ns: list[int] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)

    def within(self, since_ns: int, until_ns: int) -> "Lag":
        """The looks of a span."""
        chosen = [i for i, at in enumerate(self.at_ns) if since_ns <= at < until_ns]
        return Lag(
            [self.at_ns[i] for i in chosen],
            [self.late_ms[i] for i in chosen],
            [self.inside[i] for i in chosen],
        )

    def extend(self, other: "Lag") -> None:
        """Add the looks of another block."""
        self.at_ns += other.at_ns
        self.late_ms += other.late_ms
        self.inside += other.inside


@asynccontextmanager
async def watched(inside: Callable[[], int]) -> AsyncIterator[Lag]:
    """Look every few milliseconds for as long as the block lasts."""
    seen = Lag()
    with Alarm() as alarm:
        task = asyncio.create_task(_watch(alarm, inside, seen))
        try:
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _watch(alarm: Alarm, inside: Callable[[], int], seen: Lag) -> None:
    meant = now_ns()
    while len(seen.at_ns) < LOOKS_MAX:
        # From the last look on: a loop that stood still is seen once, as long as it stood.
        meant = max(meant + EVERY_NS, now_ns())
        await alarm.until(meant)
        seen.at_ns.append(meant)
        seen.late_ms.append((now_ns() - meant) / 1e6)
        seen.inside.append(inside())
