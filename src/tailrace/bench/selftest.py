"""Does the generator read what it should? Servers of a fixed delay on this machine, and what was measured.

The server's own stamps tell how long it really took, so that a late timer of its loop is not blamed on the
generator.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np

from tailrace.bench.alarm import Alarm
from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.port import Ask, Reading

DELAYS_MS = (0.0, 5.0, 100.0)
TRIES = 40
WITHIN_MS = 0.2
"""By how much the median may miss the delay."""
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-took-ms: %.3f\r\n\r\nok"


@dataclass(frozen=True, slots=True)
class Checked:
    """One delay, and how it was read."""

    delay_ms: float
    median_ms: float
    """Of what the generator read beyond the time that the server really took."""

    @property
    def passed(self) -> bool:
        """Whether the median is near enough."""
        return abs(self.median_ms) <= WITHIN_MS


@dataclass(frozen=True, slots=True)
class _Timed:
    """A server that says how long it took."""

    name: str

    def ask(self, index: int) -> Ask:
        del index
        return Ask("GET", self.name)

    def read(self, exchange: Exchange) -> Reading:
        return Reading(detail={"took_ms": float(exchange.headers["x-took-ms"])})


async def self_test(delays_ms: Sequence[float] = DELAYS_MS, tries: int = TRIES) -> list[Checked]:
    """Ask a server of each delay `tries` times, one request after the other."""
    found = []
    for delay in delays_ms:
        async with fixed_delay(delay) as url, Pool(connections=1) as pool:
            beyond = []
            for number in range(tries if delay < 50 else max(5, tries // 4)):
                row = await measure(pool, _Timed(url), number)
                beyond.append(row.wall_ms - row.detail["took_ms"])
            found.append(Checked(delay, float(np.median(beyond[1:]))))
    return found


class _Delaying(asyncio.Protocol):
    """One connection: what came is stamped where it comes in, and answered after the delay."""

    def __init__(self, delay_ns: int) -> None:
        self._delay_ns = delay_ns
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._alarm = Alarm()
        self._alarm.__enter__()

    def data_received(self, data: bytes) -> None:
        came = now_ns()
        if data.endswith(b"\r\n\r\n"):
            self._task = asyncio.ensure_future(self._answer(came))

    async def _answer(self, came: int) -> None:
        await self._alarm.until(came + self._delay_ns)
        self._transport.write(ANSWER % ((now_ns() - came) / 1e6))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._task is not None:
            self._task.cancel()
        self._alarm.__exit__(None, None, None)


@asynccontextmanager
async def fixed_delay(delay_ms: float) -> AsyncIterator[str]:
    """A server that answers after `delay_ms`, each connection on its own; its URL."""
    loop = asyncio.get_running_loop()

    def connected() -> _Delaying:
        return _Delaying(round(delay_ms * 1e6))

    server = await loop.create_server(connected, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.close()
        await asyncio.sleep(0.01)  # who let go of a connection has let go of it here too
