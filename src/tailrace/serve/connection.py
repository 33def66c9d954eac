"""uvicorn's connection with three habits changed: an answer is one write, and who hung up is told at once.

Each write to a socket wakes whoever waits at its other end; head and body apart wake a client twice.
And a request that must watch for its caller's leaving by `receive` needs a task of its own for that.
Bytes that are no request get a problem instead of plain text: the only answer it knows.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tailrace.wire.problem import MEDIA_TYPE, problem

CALLER = "tailrace.caller"
"""Where a request's scope holds its `Presence`; other servers than ours have none."""
WHOLE = "tailrace.whole"
"""In a request's scope once all of its body is here."""
HEAD = b"HTTP/1.1 "


class Presence:
    """Whether the caller is still there; whoever minds is told when it goes."""

    __slots__ = ("_told", "gone")

    def __init__(self) -> None:
        self.gone = False
        self._told: set[Callable[[], object]] = set()

    def watch(self, tell: Callable[[], object]) -> None:
        """Call `tell` once when the caller goes; at once where it is gone already."""
        if self.gone:
            tell()
        else:
            self._told.add(tell)

    def unwatch(self, tell: Callable[[], object]) -> None:
        """Do not call `tell` any more."""
        self._told.discard(tell)

    def leave(self) -> None:
        """The caller is gone."""
        self.gone = True
        told, self._told = self._told, set()
        for tell in told:
            tell()


class _OneWrite:
    """A transport that keeps the head of an answer back until its body, or the loop's next turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """Write `data`, after what was kept back."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Write what was kept back, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            data, self._head = self._head, b""
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """One connection of a caller."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a caller who is there."""
        self._presence = Presence()
        super().connection_made(_OneWrite(transport, self.loop))  # type: ignore[arg-type]

    def on_headers_complete(self) -> None:
        """A request begins: it may ask whether its caller is there."""
        super().on_headers_complete()
        self.scope[CALLER] = self._presence  # type: ignore[literal-required]

    def on_message_complete(self) -> None:
        """All of the body is here."""
        super().on_message_complete()
        self.scope[WHOLE] = True  # type: ignore[literal-required]

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that no application can be asked about, and hang up."""
        body = orjson.dumps(problem("not-http", 400, "This is not HTTP", msg))
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller is gone."""
        super().connection_lost(exc)
        self._presence.leave()
