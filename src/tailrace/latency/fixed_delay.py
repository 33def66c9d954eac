"""A server in a process of its own that answers after exactly so long: what a measuring tool is measured by.

`python -m tailrace.latency.fixed_delay 0 5 100` listens on a free port per delay (milliseconds), prints the
ports in that order, and ends when its standard input does. It waits the last stretch busily, since a timer
is late by as much as a busy machine likes, and says in Server-Timing how long it held the request.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from tailrace.latency.exchange import now_ns

BUSY_NS = 2_000_000
"""The last stretch of a delay, waited without sleeping."""


def _answer(held_ns: int) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nserver-timing: app;dur={held_ns / 1e6:.3f}\r\n"
    return head.encode() + b"\r\n"


class _Answering(asyncio.Protocol):
    def __init__(self, delay_ns: int) -> None:
        self._delay_ns = delay_ns
        self._transport: asyncio.Transport | None = None
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        since = now_ns()
        self._head += data
        if b"\r\n\r\n" not in self._head:
            return
        self._head = b""
        sleep_ns = max(0, self._delay_ns - BUSY_NS)
        if sleep_ns:
            asyncio.get_running_loop().call_later(sleep_ns / 1e9, self._answer, since)
        else:
            self._answer(since)

    def _answer(self, since: int) -> None:
        while (held := now_ns() - since) < self._delay_ns:
            pass
        if self._transport is not None:
            self._transport.write(_answer(held))


async def _serve(delays_ms: Sequence[float]) -> None:
    loop = asyncio.get_running_loop()
    ports = []
    for ms in delays_ms:
        make = partial(_Answering, round(ms * 1e6))
        server = await loop.create_server(make, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    sys.stdout.write(" ".join(map(str, ports)) + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


@contextlib.contextmanager
def fixed_delays(delays_ms: Sequence[float]) -> Iterator[list[str]]:
    """One URL per delay, served until the block ends."""
    command = [sys.executable, "-m", "tailrace.latency.fixed_delay", *map(str, delays_ms)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ports = process.stdout.readline().split()
            if len(ports) != len(delays_ms):
                raise OSError("the servers of fixed delay did not start")
            yield [f"http://127.0.0.1:{port}/" for port in ports]
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    asyncio.run(_serve([float(word) for word in sys.argv[1:]]))
