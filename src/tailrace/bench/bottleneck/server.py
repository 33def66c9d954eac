"""A small chat server of one place, and its way there: a process of its own on loopback.

`python -m tailrace.bench.bottleneck.server JSON` prints the port of the far end of the way and ends when its
standard input does. It streams as OpenAI-compatible servers do, has one line for everybody, and says in
Server-Timing how long a request stood in it. Nothing is computed: it takes the time that its place says.
"""

import asyncio
import contextlib
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

import httptools
import orjson

from tailrace.bench.bottleneck.places import Place
from tailrace.bench.bottleneck.way import Way
from tailrace.wire.headers import SERVER_TIMING

HEAD = (
    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncache-control: no-store\r\n"
    "{more}transfer-encoding: chunked\r\n\r\n"
)
BODY_BYTES_MAX = 1 << 20
"""The largest request it reads."""
REASONING_PIECES = 6
PING = "/livez"


class _Model:
    """The line and the slots of a place, with other people in it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.turn = asyncio.Semaphore(place.slots)
        self._chance = random.Random(place.seed)
        self._crowd = random.Random(place.seed + 1000)
        self._tasks: set[asyncio.Task[None]] = set()

    def about(self, median_ms: float) -> float:
        """Seconds, drawn around a median."""
        return median_ms / 1000 * math.exp(self._chance.gauss(0.0, self.place.spread))

    async def others(self) -> None:
        """Other people's requests, for ever."""
        place = self.place
        while place.others_per_s:
            await asyncio.sleep(self._crowd.expovariate(place.others_per_s))
            task = asyncio.create_task(self._other(self._crowd.expovariate(1000 / place.others_ms)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _other(self, seconds: float) -> None:
        async with self.turn:
            await asyncio.sleep(seconds)


class _Answering(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self, model: _Model) -> None:
        self._model = model
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._path = b""
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._transport = None
        if self._task is not None:
            self._task.cancel()  # nobody waits for it any more: the slot is free again

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._hang_up()

    def on_url(self, url: bytes) -> None:
        self._path = url

    def on_message_begin(self) -> None:
        self._body.clear()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > BODY_BYTES_MAX:
            self._hang_up()

    def on_message_complete(self) -> None:
        body, path = bytes(self._body), self._path.decode("ascii", "replace")
        self._task = asyncio.get_running_loop().create_task(self._answer(path, body))

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def _answer(self, path: str, body: bytes) -> None:
        if not path.endswith("/chat/completions"):
            status = "200 OK" if path == PING else "404 Not Found"
            self._begin(status, "text/plain", {})
            self._end()
            return
        try:
            asked = orjson.loads(body)
            thinks = self._model.place.think_ms > 0 and asked.get("reasoning_effort") != "none"
        except (orjson.JSONDecodeError, AttributeError):
            self._begin("400 Bad Request", "text/plain", {})
            self._end()
            return
        await self._chat(thinks=thinks)

    async def _chat(self, *, thinks: bool) -> None:
        model, place, loop = self._model, self._model.place, asyncio.get_running_loop()
        came = loop.time()
        async with model.turn:
            began = loop.time()
            await asyncio.sleep(model.about(place.prefill_ms))
            spoke = loop.time()
            timing = {"admit": 0.0, "wait": began - came, "infer": spoke - began, "serialize": 0.0}
            self._begin("200 OK", "text/event-stream", timing)
            if thinks:
                await self._say("reasoning_content", model.about(place.think_ms), REASONING_PIECES)
            await self._say("content", model.about(place.generate_ms), place.tokens)
        self._write(b"data: " + orjson.dumps(self._last(thinks=thinks)) + b"\n\ndata: [DONE]\n\n")
        self._end()

    async def _say(self, channel: str, seconds: float, pieces: int) -> None:
        """So many pieces, the first at once, the last when the time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(pieces):
            due = began + seconds * number / max(1, pieces - 1)
            if (ahead := due - loop.time()) > 0:
                await asyncio.sleep(ahead)
            choice = {"index": 0, "delta": {channel: "word "}}
            self._write(b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n")

    def _last(self, *, thinks: bool) -> Mapping[str, Any]:
        thoughts = REASONING_PIECES if thinks else 0
        tokens = self._model.place.tokens + thoughts
        return {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 20,
                "completion_tokens": tokens,
                "completion_tokens_details": {"reasoning_tokens": thoughts},
            },
        }

    def _begin(self, status: str, kind: str, timing: Mapping[str, float]) -> None:
        entries = ", ".join(f"{name};dur={s * 1000:.3f}" for name, s in timing.items())
        more = f"{SERVER_TIMING}: {entries}\r\n" if entries else ""
        if self._transport is not None:
            self._transport.write(HEAD.format(status=status, kind=kind, more=more).encode("ascii"))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end(self) -> None:
        if self._transport is not None:
            self._transport.write(b"0\r\n\r\n")


async def _serve(place: Place) -> None:
    loop = asyncio.get_running_loop()
    model = _Model(place)
    server = await loop.create_server(lambda: _Answering(model), "127.0.0.1", 0)
    way = Way(server.sockets[0].getsockname()[1], place.net_ms / 2000)
    far_end = await loop.create_server(way.connection, "127.0.0.1", 0)
    crowd = asyncio.create_task(model.others())
    sys.stdout.write(f"{far_end.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    crowd.cancel()


@contextlib.contextmanager
def serving(place: Place) -> Iterator[str]:
    """The place's URL, as long as the block lasts; raises OSError where it does not start."""
    command = [
        sys.executable,
        "-m",
        "tailrace.bench.bottleneck.server",
        json.dumps(place.to_json()),
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
        start_new_session=True,  # Ctrl-C is the parent's; the end of its input ends the child
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port.isdigit():
                raise OSError(f"the server of {place.name} did not start")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    asyncio.run(_serve(Place.from_json(json.loads(sys.argv[1]))))
