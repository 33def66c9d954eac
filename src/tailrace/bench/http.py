"""One caller on a connection of its own: made first, sent on later, its answer in hand or an error.

The measuring client of `latency` without its pool, for crowds that go at the same moment and for scripts.
Speaks HTTP only; knows nothing of the house.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.latency import http1
from tailrace.latency.address import BadAddress, address
from tailrace.latency.dialing import dial
from tailrace.latency.exchange import Exchange, Stamps, now_ns

NS = 1e-9


class CannotConnect(Exception):
    """Nobody answers at the address."""


class HungUp(Exception):
    """The server closed the connection before it had answered."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, with the moments of its request: seconds of the machine's monotonic clock."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    sent: float
    finished: float

    @property
    def seconds(self) -> float:
        """From the last byte sent to the last byte read."""
        return self.finished - self.sent


class Connection:
    """One connection to an http:// address."""

    def __init__(self, origin: str, made: http1.Connection) -> None:
        self._origin = origin
        self._made = made

    @classmethod
    async def open(cls, url: str, connect_timeout_s: float = 5.0) -> "Connection":
        """Connect to the host of `url`; raises CannotConnect."""
        try:
            to = address(url)
        except BadAddress as bad:
            raise CannotConnect(str(bad)) from None
        if to.scheme != "http":
            raise CannotConnect(f"{url} is not an http:// address")
        attempt = _begun("CONNECT", url)
        try:
            async with asyncio.timeout(connect_timeout_s):
                made = await dial(to, attempt, None)
        except TimeoutError:
            raise CannotConnect(
                f"nobody answers at {to.authority} within {connect_timeout_s:g} s"
            ) from None
        if made is None:
            said = attempt.failure.message if attempt.failure is not None else to.authority
            raise CannotConnect(said)
        return cls(f"http://{to.authority}", made)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request and read its answer; raises HungUp."""
        if not self._made.usable:
            raise HungUp("the connection is closed")
        exchange = _begun(method, self._origin + path)
        payload = http1.request_bytes(method, address(exchange.url), headers or {}, body)
        await self._made.carry(exchange, payload)
        stamps = exchange.stamps
        if exchange.failure is not None:
            raise HungUp(exchange.failure.message)
        assert exchange.status is not None
        assert stamps.sent is not None
        assert stamps.last_byte is not None
        moments = (stamps.sent * NS, stamps.last_byte * NS)
        return Response(exchange.status, exchange.headers, exchange.body, *moments)

    def hang_up(self) -> None:
        """Let go of the connection without waiting for anything."""
        self._made.close()

    async def close(self) -> None:
        """Let go of the connection; it is gone when this returns."""
        self._made.close()
        await asyncio.sleep(0)  # the transport closes in the loop's next turn


def _begun(method: str, url: str) -> Exchange:
    now = now_ns()
    return Exchange(method, url, Stamps(now, now))
