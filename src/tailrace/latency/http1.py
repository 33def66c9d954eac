"""One HTTP/1.1 connection as a client sees it: one request at a time, every edge stamped where it happens.

Stamps are taken in the transport's own callbacks, before anything is parsed. No redirects, no cookies, no
compression: what is measured is the request that was asked for. Knows nothing of pools or meanings.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

import httptools

from tailrace.latency.address import Address
from tailrace.latency.exchange import Chunk, ConnectionFacts, Exchange, FailureKind, now_ns
from tailrace.latency.tcp_info import tcp_info

HEAD_BYTES_MAX = 1 << 16
"""The largest head of an answer."""
BODY_BYTES_MAX = 64 << 20
"""The largest body of an answer."""
CHUNKS_MAX = 1 << 18
"""The most pieces of one body whose moments are kept."""
AT_ONCE_BYTES = 1 << 16
"""Requests up to this size are handed over in one call whose length is no sending time."""
BODYLESS = {"GET", "HEAD", "DELETE", "OPTIONS"}

DEFAULTS = {
    "accept": "*/*",
    "accept-encoding": "identity",
    "user-agent": "tailrace",
}


class BadHeader(ValueError):
    """A header that cannot be sent; names the header and never repeats its value."""


def request_bytes(method: str, to: Address, headers: Mapping[str, str], body: bytes) -> bytes:
    """The request as it goes out, in one piece; raises BadHeader."""
    every = {"host": to.authority, **DEFAULTS, **{k.lower(): v for k, v in headers.items()}}
    if body or method not in BODYLESS:
        every["content-length"] = str(len(body))
    return b"".join(
        [
            f"{method} {to.target} HTTP/1.1\r\n".encode("ascii"),
            *_lines(every.items()),
            b"\r\n",
            body,
        ]
    )


def _lines(headers: Iterable[tuple[str, str]]) -> Iterable[bytes]:
    for name, value in headers:
        if "\r" in value or "\n" in value or "\0" in value or not name.isascii():
            raise BadHeader(f"the header {name!r} holds a line break or a name that is not ASCII")
        try:
            yield f"{name}: {value}\r\n".encode("latin-1")
        except UnicodeEncodeError:
            raise BadHeader(
                f"the header {name!r} holds a character that HTTP cannot carry"
            ) from None


class Connection(asyncio.Protocol):
    """A connection that is made (see `dialing`); carries one exchange after the other."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._arrived = 0
        """When the bytes at hand came."""
        self._size = 0
        self._head_size = 0
        self._until_closed = False
        """Whether the end of the body is the end of the connection."""
        self._keep = True
        self._requests = 0

    # What the pool asks for.

    @property
    def usable(self) -> bool:
        """Whether another request may be sent on it, as far as is known on this side."""
        transport = self._transport
        return (
            self._keep
            and self._exchange is None
            and transport is not None
            and not transport.is_closing()
        )

    async def carry(self, exchange: Exchange, request: bytes) -> None:
        """Send `request` and wait for its whole answer, or for `exchange.failure`."""
        transport = self._transport
        assert transport is not None
        assert self._exchange is None
        self._begin(exchange)
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        exchange.sent_bytes = len(request)
        try:
            before = now_ns()
            transport.write(request)
            if not transport.get_write_buffer_size():
                # The far end may begin before the call returns: what goes out at once is sent when called.
                small = len(request) <= AT_ONCE_BYTES
                exchange.stamps.sent = exchange.stamps.sent or (before if small else now_ns())
            await waiter
        finally:
            self._finish(exchange)

    def close(self) -> None:
        """Let go of the connection at once, without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; from now on a write that does not go out at once pauses us."""
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)

    def resume_writing(self) -> None:
        """The last byte of the request has gone out."""
        if self._exchange is not None and self._exchange.stamps.sent is None:
            self._exchange.stamps.sent = now_ns()

    def data_received(self, data: bytes) -> None:
        """Bytes came: stamp first, then parse."""
        self._arrived = now_ns()
        exchange = self._exchange
        if exchange is None or self._waiter is None or self._waiter.done():
            self._keep = False  # nobody asked for this
            self.close()
            return
        if exchange.stamps.first_byte is None:
            exchange.stamps.first_byte = self._arrived
        if exchange.stamps.head is None:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("malformed", "the answer wants another protocol than HTTP/1.1")
        except httptools.HttpParserError as error:
            self._fail("malformed", f"the answer is no HTTP/1.1: {error}")
        if exchange.stamps.head is None and self._head_size > HEAD_BYTES_MAX:
            self._fail("too-large", f"the head of the answer is over {HEAD_BYTES_MAX} bytes")
        if self._size > BODY_BYTES_MAX or len(exchange.chunks) > CHUNKS_MAX:
            self._fail(
                "too-large", f"the answer is over {BODY_BYTES_MAX >> 20} MiB or in too many pieces"
            )

    def eof_received(self) -> bool:
        """The other end has said its last: some answers end so."""
        self._arrived = now_ns()
        self._ended()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._arrived = now_ns()
        self._ended(exc)
        self._transport = None

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one trailer."""
        exchange = self._exchange
        assert exchange is not None
        into = exchange.headers if exchange.stamps.head is None else exchange.trailers
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        into[key] = f"{into[key]}, {text}" if key in into else text

    def on_headers_complete(self) -> None:
        """The head is whole; 1xx is none."""
        exchange = self._exchange
        assert exchange is not None
        status = self._parser.get_status_code()
        if status < 200:
            return
        exchange.status, exchange.stamps.head = status, self._arrived
        headers = exchange.headers
        self._until_closed = (
            "content-length" not in headers
            and "chunked" not in headers.get("transfer-encoding", "").lower()
        )
        if exchange.method == "HEAD":
            self._keep = False  # the parser would wait for a body
            self._complete()

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        exchange = self._exchange
        assert exchange is not None
        self._size += len(data)
        exchange.chunks.append(Chunk(self._arrived, data))

    def on_message_complete(self) -> None:
        """The answer is whole; after 1xx the real one follows."""
        exchange = self._exchange
        assert exchange is not None
        if exchange.stamps.head is None:
            exchange.headers.clear()
            return
        self._keep = self._keep and self._parser.should_keep_alive()
        self._complete()

    # Within.

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._size = self._head_size = 0
        self._until_closed = False
        self._requests += 1

    def _complete(self) -> None:
        waiter, exchange = self._waiter, self._exchange
        if waiter is None or exchange is None or waiter.done():
            return
        if (
            exchange.stamps.sent is None
        ):  # answered before it had heard all: what is left is not sent
            exchange.stamps.sent = exchange.stamps.first_byte
            self._keep = False
        exchange.stamps.last_byte = self._arrived
        waiter.set_result(None)

    def _fail(self, kind: FailureKind, message: str) -> None:
        self._keep = False
        if self._waiter is not None and not self._waiter.done():
            assert self._exchange is not None
            self._exchange.fail(kind, message)
            self._waiter.set_result(None)
        self.close()

    def _ended(self, exc: Exception | None = None) -> None:
        self._keep = False
        exchange = self._exchange
        if exchange is None or self._waiter is None or self._waiter.done():
            return
        if exchange.stamps.head is not None and self._until_closed and exc is None:
            self._complete()
        elif exchange.stamps.first_byte is not None:
            self._fail("truncated", f"the answer broke off after {self._size} bytes of its body")
        else:
            why = f": {exc}" if exc is not None else ""
            self._fail("hung-up", f"the connection was closed without an answer{why}")

    def _finish(self, exchange: Exchange) -> None:
        """Keep what is known of the connection; one that is left in the middle is of no more use."""
        if self._waiter is None or self._waiter.cancelled():
            self._keep = False
            self.close()
        exchange.connection = self.facts()
        self._exchange = self._waiter = None

    def facts(self) -> ConnectionFacts:
        """What is known of the connection now."""
        return describe(self._transport, self._requests)


def describe(transport: asyncio.Transport | None, requests: int) -> ConnectionFacts:
    """The facts of a transport; a closed one has told its last."""
    if transport is None:
        return ConnectionFacts(requests > 1, "", requests=requests)
    peer: Any = transport.get_extra_info("peername")
    tls: Any = transport.get_extra_info("ssl_object")
    info = tcp_info(transport.get_extra_info("socket"))
    return ConnectionFacts(
        reused=requests > 1,
        peer=f"{peer[0]}:{peer[1]}" if peer else "",
        tls_version=tls.version() if tls is not None else None,
        min_rtt_ns=info.min_rtt_ns,
        retransmits=info.retransmits,
        requests=requests,
    )
