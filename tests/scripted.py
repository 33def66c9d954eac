"""A server that answers by a script, byte for byte: what real servers do on their bad days."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CLOSE = "close"
"""End the connection in good order."""
RESET = "reset"
"""Tear the connection down."""
Step = bytes | float | str
Answer = Sequence[Step]


def reply(
    body: bytes = b"{}",
    status: int = 200,
    headers: Sequence[tuple[str, str]] = (),
    reason: str = "OK",
) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
    return head.encode("latin-1") + body


@dataclass
class Scripted:
    """Where it listens, and what it was asked."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head + await reader.readexactly(length)


@asynccontextmanager
async def scripted(
    *answers: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Scripted]:
    """Answer request number i by script i; the last script repeats."""
    server = Scripted("")
    open_writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        open_writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await _request(reader)
                answer = answers[min(len(server.requests), len(answers) - 1)]
                server.requests.append(request)
                for step in answer:
                    if isinstance(step, bytes):
                        writer.write(step)
                        await writer.drain()
                    elif step == CLOSE:
                        writer.close()
                        return
                    elif step == RESET:
                        writer.transport.abort()
                        return
                    else:
                        await asyncio.sleep(float(step))

    listening = await asyncio.start_server(serve, host, 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield server
    finally:
        listening.close()
        for writer in open_writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)
