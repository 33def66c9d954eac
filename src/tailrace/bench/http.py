"""A small asyncio HTTP/1.1 client whose moments are exact: connect first, send later, stamp each edge.

One request at a time on a connection. Speaks HTTP only; knows nothing of the house.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

READ_SIZE = 1 << 16


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
        """From the first byte sent to the last byte read."""
        return self.finished - self.sent


class Connection:
    """One connection to an http:// address."""

    def __init__(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._host = host
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT)

    @classmethod
    async def open(cls, url: str, connect_timeout_s: float = 5.0) -> "Connection":
        """Connect to the host of `url`; raises CannotConnect."""
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError as error:
            raise CannotConnect(f"{url} is not an address: {error}") from error
        if parts.scheme != "http" or not parts.hostname:
            raise CannotConnect(f"{url} is not an http:// address")
        try:
            async with asyncio.timeout(connect_timeout_s):
                reader, writer = await asyncio.open_connection(parts.hostname, port)
        except (OSError, TimeoutError) as error:
            raise CannotConnect(f"nobody answers at {parts.netloc}: {error}") from error
        return cls(parts.netloc, reader, writer)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request and read its answer; raises HungUp."""
        every = {"Host": self._host, "Content-Length": str(len(body)), **(headers or {})}
        request = h11.Request(method=method, target=path, headers=list(every.items()))
        out = [self._protocol.send(request), self._protocol.send(h11.Data(body))]
        out.append(self._protocol.send(h11.EndOfMessage()))
        sent = time.monotonic()
        try:
            self._writer.write(b"".join(piece for piece in out if piece))
            await self._writer.drain()
            return await self._read(sent)
        except (ConnectionError, h11.RemoteProtocolError) as error:
            raise HungUp(str(error)) from error

    async def _read(self, sent: float) -> Response:
        head: h11.Response | None = None
        body = bytearray()
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                data = await self._reader.read(READ_SIZE)
                self._protocol.receive_data(data)
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.ConnectionClosed):
                raise HungUp("closed without an answer")
        finished = time.monotonic()
        assert head is not None
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
        return Response(head.status_code, headers, bytes(body), sent, finished)

    def hang_up(self) -> None:
        """Let go of the connection without waiting for anything."""
        self._writer.close()

    async def close(self) -> None:
        """Let go of the connection and wait until it is gone."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return
