"""A way of a certain length on loopback: passes bytes on, both ways, each after the same time.

Shapes nothing else: no loss, no limit of bandwidth, no change of order. A connection is accepted at once, so
the kernel sees no distance; bytes do.
"""

import asyncio
from typing import cast

HELD_MAX = 1 << 22
"""Bytes on their way in one direction, before reading stops for a while."""


class Way:
    """Leads to a port of this machine; `each_s` is the time of one direction."""

    def __init__(self, port: int, each_s: float) -> None:
        self._port, self._each_s = port, each_s

    def connection(self) -> asyncio.Protocol:
        """What accepts one connection at the near end; a factory for `create_server`."""
        return _Near(self._port, self._each_s)


class _End(asyncio.Protocol):
    """One end of a connection: what comes in here leaves at the other end a while later."""

    def __init__(self, each_s: float) -> None:
        self._each_s = each_s
        self._held = 0
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._held += len(data)
        if self._held > HELD_MAX and self.transport is not None:
            self.transport.pause_reading()
        asyncio.get_running_loop().call_later(self._each_s, self._arrive, data)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self.transport = None
        asyncio.get_running_loop().call_later(self._each_s, self._close_other)

    def _arrive(self, data: bytes) -> None:
        self._held -= len(data)
        if self.transport is not None and not self.transport.is_reading():
            self.transport.resume_reading()
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def _close_other(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _Near(_End):
    """The end that was connected to: it connects on, and holds what came until it has."""

    def __init__(self, port: int, each_s: float) -> None:
        super().__init__(each_s)
        self._port = port
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        far = _End(self._each_s)
        far.other = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, "127.0.0.1", self._port)
        except OSError:
            if self.transport is not None:
                self.transport.close()
            return
        self.other = far
        for data in self._early:
            self._arrive(data)
        if self.transport is None:  # who connected has left meanwhile
            self._close_other()

    def _arrive(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            super()._arrive(data)
