"""The client: connections kept by origin, a request on one of them, and waiting for one as a part of its own.

Always answers with an `Exchange`, failed ones too: what went wrong is data of a measurement. Raises only for
what can be known before anything is sent.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from tailrace.latency.address import Address, address
from tailrace.latency.dialing import dial
from tailrace.latency.exchange import Exchange, Stamps, now_ns
from tailrace.latency.http1 import Connection, request_bytes
from tailrace.wire.tracing import Choice, Tracing, open_tracing

CONNECTIONS_MAX = 4096
"""The most connections to one origin."""
TIMEOUT_S = 60.0
SERVICE = "tailrace-client"
"""What the sender of spans is called, where OTEL_SERVICE_NAME does not say."""


class _Origin:
    """The connections to one scheme, host and port."""

    def __init__(self, limit: int) -> None:
        self.free = asyncio.Semaphore(limit)
        self.min_rtt_ns: dict[str, int] = {}
        """The smallest round trip by address, over all connections to it so far."""
        self.idle: list[Connection] = []

    def take(self) -> Connection | None:
        """The connection used last, so that the fewest are kept warm; None where one must be made."""
        while self.idle:
            connection = self.idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    def note(self, exchange: Exchange) -> None:
        """A young connection has seen few round trips; its elder sisters to the same address more."""
        facts = exchange.connection
        if facts is None or facts.min_rtt_ns is None:
            return
        known = self.min_rtt_ns.get(facts.peer)
        best = facts.min_rtt_ns if known is None else min(known, facts.min_rtt_ns)
        self.min_rtt_ns[facts.peer] = best
        exchange.connection = replace(facts, min_rtt_ns=best)


class Pool:
    """Connections to any number of origins, at most `connections` to each of them."""

    def __init__(
        self, *, connections: int = CONNECTIONS_MAX, tls: ssl.SSLContext | None = None
    ) -> None:
        if not 1 <= connections <= CONNECTIONS_MAX:
            raise ValueError(f"a pool has 1 to {CONNECTIONS_MAX} connections")
        self._limit = connections
        self._tls = tls
        self._origins: dict[tuple[str, str, int], _Origin] = {}
        self.tracing: Tracing | None = None
        """Where spans of its requests go, while it is entered and the environment names a collector."""

    async def __aenter__(self) -> Self:
        self.tracing = open_tracing(Choice(), SERVICE)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all idle connections."""
        for origin in self._origins.values():
            while origin.idle:
                origin.idle.pop().close()
        await asyncio.sleep(0)  # the transports close in the loop's next turn
        if self.tracing is not None:
            tracing, self.tracing = self.tracing, None
            await asyncio.to_thread(tracing.close)

    async def warm(self, url: str, count: int, *, timeout_s: float = 5.0) -> Exchange | None:
        """Make `count` connections beforehand; the first failed attempt, or None where all are made."""
        to = address(url)
        origin = self._origin(to)
        attempts = [Exchange("CONNECT", url, Stamps(now_ns(), now_ns())) for _ in range(count)]

        async def one(attempt: Exchange) -> None:
            try:
                async with asyncio.timeout(timeout_s):
                    connection = await dial(to, attempt, self._tls)
            except TimeoutError:
                attempt.fail("timeout", f"no connection to {to.authority} within {timeout_s:g} s")
                return
            if connection is not None:
                origin.idle.append(connection)

        await asyncio.gather(*(one(attempt) for attempt in attempts))
        return next((attempt for attempt in attempts if attempt.failure), None)

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        intended_ns: int | None = None,
        timeout_s: float = TIMEOUT_S,
        fresh: bool = False,
    ) -> Exchange:
        """One request and its whole answer, or why there is none.

        `intended_ns` is the moment of `now_ns` at which it was meant to start (default: now), and it is
        not taken up before, so that no part is shorter than nothing. `timeout_s` counts from when it is
        taken up; `fresh` makes a connection for it even where one is idle.

        Raises:
            BadAddress: the URL cannot be asked.
            BadHeader: a header cannot be sent.

        """
        to = address(url)
        payload = request_bytes(method, to, headers or {}, body)
        # A timer may fire up to its resolution early; the loop's next turns make up for that.
        while now_ns() < (intended_ns or 0):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0)
        taken = now_ns()
        exchange = Exchange(method, url, Stamps(intended_ns or taken, taken))
        try:
            async with asyncio.timeout(timeout_s):
                await self._carry(to, exchange, payload, fresh)
        except TimeoutError:
            exchange.fail("timeout", f"no answer within {timeout_s:g} s")
        return exchange

    def _origin(self, to: Address) -> _Origin:
        origin = self._origins.get(to.origin)
        if origin is None:
            origin = self._origins[to.origin] = _Origin(self._limit)
        return origin

    async def _carry(self, to: Address, exchange: Exchange, payload: bytes, fresh: bool) -> None:
        origin = self._origin(to)
        async with origin.free:
            connection = None if fresh else origin.take()
            if connection is not None:
                await self._use(origin, connection, exchange, payload)
                if not _closed_while_idle(exchange):
                    return
                _again(exchange)
            connection = await dial(to, exchange, self._tls)
            if connection is not None:
                await self._use(origin, connection, exchange, payload)

    async def _use(
        self, origin: _Origin, connection: Connection, exchange: Exchange, payload: bytes
    ) -> None:
        exchange.stamps.connected = now_ns()
        try:
            await connection.carry(exchange, payload)
        except BaseException:  # given up, be it in the moment the answer came: nobody keeps it
            connection.close()
            raise
        origin.note(exchange)
        if connection.usable:
            origin.idle.append(connection)
        else:
            connection.close()


def _closed_while_idle(exchange: Exchange) -> bool:
    """Whether a kept connection closed before a byte of the answer: the server had given it up."""
    return (
        exchange.failure is not None
        and exchange.failure.kind == "hung-up"
        and exchange.connection is not None
        and exchange.connection.reused
    )


def _again(exchange: Exchange) -> None:
    """Forget the first attempt; its time counts as waiting for a connection."""
    exchange.failure = exchange.connection = None
    exchange.stamps.connected = exchange.stamps.sent = exchange.stamps.ended = None
    exchange.retried = True
