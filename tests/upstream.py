"""A scripted upstream: a real server on a loopback port that answers, stalls, refuses or breaks as told."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn

from tailrace.apps.api.app import api_app
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.serve.runner import bind

DIMENSIONS = 4


@dataclass(frozen=True)
class Step:
    """What the upstream does with one request."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Instead of the usual answer."""
    before_head_s: float = 0.0
    before_body_s: float = 0.0
    pieces: Sequence[bytes] | None = None
    """The body bit by bit, chunked."""
    between_s: float = 0.0
    reset: bool = False
    """Break the connection off instead of answering, or after the pieces."""


@dataclass
class Asked:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ScriptedUpstream:
    """Follows `steps`, one for each request; without any it answers as it should, after `seconds`."""

    def __init__(self) -> None:
        self.steps: deque[Step] = deque()
        self.always: Step | None = None
        self.decide: Callable[[Asked], Step | None] = lambda asked: None
        self.seconds = 0.0
        self.asked: list[Asked] = []
        self.connections = self.inside = self.most = self.hung_up = self.sent = 0
        self.url = ""

    def usual(self, asked: Asked) -> bytes:
        """The answer of a healthy upstream."""
        if asked.path.endswith("/embeddings"):
            data = [
                {"object": "embedding", "index": i, "embedding": vector(text)}
                for i, text in enumerate(asked.body["input"])
            ]
            # In the wrong order: only the index counts.
            return orjson.dumps({"object": "list", "data": data[::-1], "model": "far-model"})
        message = {"role": "assistant", "content": asked.body["messages"][-1]["content"][::-1]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        made = {"id": "c1", "object": "chat.completion", "created": 1, "model": "far-model"}
        return orjson.dumps({**made, "choices": [choice]})

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with (
            contextlib.closing(writer),  # also where the upstream ends before its callers leave
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError),
        ):
            while True:
                asked = await _request(reader)
                self.asked.append(asked)
                self.inside += 1
                self.most = max(self.most, self.inside)
                step = self.steps.popleft() if self.steps else self.always or self.decide(asked)
                doing = asyncio.ensure_future(
                    self._answer(asked, step or self._default(asked), writer)
                )
                leaving = asyncio.ensure_future(reader.read(1))
                try:
                    await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    if not doing.done():
                        self.hung_up += 1
                        doing.cancel()
                        break
                    if not doing.result():
                        break
                finally:
                    self.inside -= 1
                    leaving.cancel()
                    await asyncio.wait({leaving, doing})

    def _default(self, asked: Asked) -> Step:
        if asked.body.get("stream"):
            return Step(pieces=events("one", "two", "three"), between_s=self.seconds / 3)
        return Step(before_head_s=self.seconds)

    async def _answer(self, asked: Asked, step: Step, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(step.before_head_s)
        if step.reset and step.pieces is None:
            _reset(writer)
            return False
        body = self.usual(asked) if step.body is None else step.body
        streams = step.pieces is not None
        kind = "text/event-stream" if streams else "application/json"
        length = "Transfer-Encoding: chunked" if streams else f"Content-Length: {len(body)}"
        head = [f"HTTP/1.1 {step.status} Said", length]
        head += [f"{k}: {v}" for k, v in {"Content-Type": kind, **step.headers}.items()]
        writer.write("\r\n".join([*head, "", ""]).encode())
        await asyncio.sleep(step.before_body_s)
        for piece in step.pieces or ():
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(step.between_s)
        if step.reset:
            _reset(writer)
            return False
        writer.write(b"0\r\n\r\n" if streams else body)
        await writer.drain()
        return True

    async def serve(
        self,
        started: Callable[[asyncio.AbstractEventLoop], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=tls)
        scheme, host = ("http", "127.0.0.1") if tls is None else ("https", "localhost")
        self.url = f"{scheme}://{host}:{server.sockets[0].getsockname()[1]}/v1"
        self.stop = asyncio.Event()
        started(asyncio.get_running_loop())
        await self.stop.wait()
        server.close()

    def until(self, true: Callable[[], bool], patience_s: float = 20.0) -> None:
        """Wait until something about it is so."""
        ends = time.monotonic() + patience_s
        while not true():
            assert time.monotonic() < ends, "never came true"
            time.sleep(0.005)


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    exact = dict(line.split(": ", 1) for line in head[1:] if line)
    headers |= {k.lower(): v for k, v in exact.items()}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(head[0].split()[1], headers, orjson.loads(body))


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break off so that the other side sees a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def vector(text: str) -> list[float]:
    """The vector of a text at this upstream."""
    return [float(len(text)), 1.0, float(sum(map(ord, text)) % 97), 2.0]


def events(*words: str) -> list[bytes]:
    """The pieces of a stream that says these words."""
    made = [
        b"data: "
        + orjson.dumps({"id": "c1", "choices": [{"index": 0, "delta": {"content": word}}]})
        for word in words
    ]
    return [piece + b"\n\n" for piece in [*made, b"data: [DONE]"]]


@contextlib.contextmanager
def upstream(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedUpstream]:
    """One upstream in a thread."""
    scripted, started = ScriptedUpstream(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def up(loop: asyncio.AbstractEventLoop) -> None:
        loops.append(loop)
        started.set()

    thread = threading.Thread(target=lambda: asyncio.run(scripted.serve(up, tls)), name="upstream")
    thread.start()
    assert started.wait(10)
    try:
        yield scripted
    finally:
        loops[0].call_soon_threadsafe(scripted.stop.set)
        thread.join(20)
        assert not thread.is_alive()


@contextlib.contextmanager
def serving_api(settings: ApiSettings) -> Iterator[tuple[str, ApiServer]]:
    """The model server on a free loopback port, in a thread; no exception may be left over in its loop."""
    server = ApiServer(settings, lambda what, share: None)
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        api_app(server), log_config=None, access_log=False, timeout_graceful_shutdown=5
    )
    runs = uvicorn.Server(config)
    errors: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        await runs.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="api")
    thread.start()
    try:
        while not runs.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
    finally:
        runs.should_exit = True
        thread.join(30)
        server.threads.close()
        assert not thread.is_alive()
        assert errors == []
