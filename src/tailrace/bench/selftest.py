"""Does the generator read what it should? Servers of a fixed delay on this machine, and what was measured.

The server's own stamps tell how long it really took, so that a late timer of its loop is not blamed on the
generator.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from tailrace.bench.alarm import Alarm
from tailrace.latency.exchange import now_ns
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.plain import PlainUrl

DELAYS_MS = (0.0, 5.0, 100.0)
TRIES = 40
WITHIN_MS = 0.2
"""By how much the median may miss the delay."""
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nserver-timing: took;dur=%.3f\r\n\r\nok"


@dataclass(frozen=True, slots=True)
class Reading:
    """One delay, and how it was read."""

    delay_ms: float
    median_ms: float
    """Of what the generator read beyond the time that the server really took."""

    @property
    def passed(self) -> bool:
        """Whether the median is near enough."""
        return abs(self.median_ms) <= WITHIN_MS


async def self_test(delays_ms: Sequence[float] = DELAYS_MS, tries: int = TRIES) -> list[Reading]:
    """Ask a server of each delay `tries` times, one request after the other."""
    found = []
    for delay in delays_ms:
        async with fixed_delay(delay) as url, Pool(connections=1) as pool:
            beyond = []
            for number in range(tries if delay < 50 else max(5, tries // 4)):
                row = await measure(pool, PlainUrl(url), number)
                took = float(row.detail.get("declared", {}).get("took", delay))
                beyond.append(row.wall_ms - took)
            found.append(Reading(delay, float(np.median(beyond[1:]))))
    return found


@asynccontextmanager
async def fixed_delay(delay_ms: float) -> AsyncIterator[str]:
    """A server that answers after `delay_ms`, each connection on its own; its URL."""
    inside: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        inside.add(task)
        try:
            with Alarm() as alarm:
                while await reader.readuntil(b"\r\n\r\n"):
                    came = now_ns()
                    await alarm.until(came + round(delay_ms * 1e6))
                    writer.write(ANSWER % ((now_ns() - came) / 1e6))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            inside.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.close()
        for task in tuple(inside):
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)
