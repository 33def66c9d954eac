"""A cheap load generator, always a process of its own: reads a plan (JSON) on stdin, writes a file.

Open loop (Poisson arrivals at a rate, whatever the server does) or closed loop (so many clients, each
asking again at once). Bodies are made beforehand; a request costs some 20 microseconds here, so that
the load does not eat the cores it is meant to measure. Every text is new: no answer comes from a cache.
"""

import asyncio
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
BACK = re.compile(rb"\r\nretry-after-ms: *(\d+)", re.IGNORECASE)
CODE = re.compile(rb'"code":"([a-z-]+)"')
TIMING = re.compile(rb"\r\nserver-timing: *([^\r]+)", re.IGNORECASE)
SIGN = 0
"""Stands in a prepared body for the number to come."""
QUERY = "room"
WORDS = """
time year people way day man thing woman life child world school state family student
group country problem hand part place case week company system program question work
government number night point home water room mother area money story fact month lot right
study book
""".split()  # noqa: SIM905 - forty words in quotes help nobody


def text(words: int) -> str:
    """Words in no order."""
    return " ".join(random.choices(WORDS, k=words))


def words_of(words: Sequence[int], chance: random.Random) -> int:
    """How many words: from-to evenly, or the lengths of real questions and passages where it says 0, 0."""
    low, high = words
    if high:
        return chance.randint(low, high)
    return min(220, max(2, round(chance.lognormvariate(3.1, 0.75))))


def marked(number: int, place: int, words: str) -> str:
    """A text as it is sent: numbered, so that no two are alike. They are tokens too: all loops send them."""
    return f"#{number} {place} {words}"


def first_number() -> int:
    """Where the numbers of a load begin: so far apart that two loads share none."""
    return random.randrange(1 << 39, 1 << 40)


@dataclass
class Plan:
    """What to send. `rate` makes it an open loop; else `clients` ask again and again."""

    url: str
    seconds: float = 5.0
    rate: float = 0.0
    clients: int = 1
    requests: int = 0
    """Stop after so many; 0 goes by time."""
    path: str = "/v1/embeddings"
    words: tuple[int, int] = (24, 24)
    """Words in a text, from and to; 0, 0 mixes lengths as they are found in the wild."""
    method: str = "POST"
    pause_s: float = 0.0
    """What a client of a closed loop rests between two requests."""
    items: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    obey: bool = False
    """Whether who is refused comes back once, when told."""
    prepared: int = 500
    out: str = "/dev/stdout"
    """Where what was seen is written."""
    timing: bool = False
    """Keep the Server-Timing of every answer."""


def ask(plan: Plan) -> str:
    """The plan as it goes to the generator's stdin."""
    return json.dumps(asdict(plan))


@dataclass(slots=True)
class Seen:
    """One request: when, how long, what came; times in seconds from the start of the load."""

    sent: float
    took: float
    status: int
    back_ms: int = 0
    returned: int = 0
    """The status of the return, where there was one."""
    code: str = ""
    """The code of an error."""
    timing: str = ""


Reply = tuple[int, bytes, bytes]
"""Status, head, and the beginning of the body."""


class Wire(asyncio.Protocol):
    """One kept connection; one request at a time."""

    def __init__(self) -> None:
        self._tell: Callable[[Reply], None] | None = None
        self.closed = False
        self._got = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Ready."""
        self.transport = transport

    def ask(self, message: bytes, tell: Callable[[Reply], None]) -> None:
        """Send a request; `tell` is called with what comes back."""
        self._tell = tell
        self.transport.write(message)

    def data_received(self, data: bytes) -> None:
        """Collect until the answer is whole."""
        self._got += data
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._got[:end])
        found = LENGTH.search(head)
        if len(self._got) < end + 4 + (int(found.group(1)) if found else 0):
            return
        body = bytes(self._got[end + 4 : end + 2000])
        self._got.clear()
        self._told((int(head[9:12]), head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closed."""
        self.closed = True
        self._told((0, b"", str(exc).encode()))

    def _told(self, reply: Reply) -> None:
        if self._tell is not None:
            tell, self._tell = self._tell, None
            tell(reply)


class Load:
    """A plan being carried out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.idle: list[Wire] = []
        self.seen: list[Seen] = []
        self.replies: list[tuple[Seen, bytes, bytes]] = []
        parts = urlsplit(plan.url)
        self.place = parts.hostname, parts.port
        headers = {"host": parts.netloc, "content-type": "application/json", **plan.headers}
        head = f"{plan.method} {plan.path} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.head = head.encode()
        self.chance = random.Random(plan.items * 1000 + plan.words[1])
        self.bodies = [self.body() for _ in range(plan.prepared)]
        self.next = 0
        self.under_way = 0

    def body(self) -> bytes:
        """A body with signs in it, which numbers replace to make every text new."""
        if self.plan.method == "GET":
            return b""
        texts = [
            marked(SIGN, i, text(words_of(self.plan.words, self.chance)))
            for i in range(self.plan.items)
        ]
        if "rerank" in self.plan.path:
            query = marked(SIGN, 0, QUERY)
            return orjson.dumps({"query": query, "texts": texts, "documents": texts})
        return orjson.dumps({"input": texts, "encoding_format": "base64"})

    def message(self) -> bytes:
        """The next request's bytes."""
        self.next += 1
        body = self.bodies[self.next % len(self.bodies)].replace(b"#%d" % SIGN, b"#%d" % self.next)
        return b"%scontent-length: %d\r\n\r\n%s" % (self.head, len(body), body)

    async def wire(self) -> Wire:
        """An idle connection, or a new one."""
        if (idle := self.idle_wire()) is not None:
            return idle
        return (await asyncio.get_running_loop().create_connection(Wire, *self.place))[1]

    def idle_wire(self) -> Wire | None:
        """An idle connection, if there is one."""
        while self.idle and self.idle[-1].closed:
            self.idle.pop()
        return self.idle.pop() if self.idle else None

    def ask(self, wire: Wire, message: bytes, then: Callable[[Seen, bytes], None]) -> None:
        """One request; no task and no future, for those cost more than all the rest of it."""
        sent = time.monotonic()

        def came(reply: Reply) -> None:
            status, head, body = reply
            seen = Seen(sent - self.began, time.monotonic() - sent, status)
            if status >= 400 or self.plan.timing:
                self.replies.append((seen, head, body))
            if not wire.closed:
                self.idle.append(wire)
            then(seen, head)

        wire.ask(message, came)

    async def once(self, message: bytes) -> tuple[Seen, bytes]:
        """One request: what was seen, and the head of the answer."""
        answer: asyncio.Future[tuple[Seen, bytes]] = asyncio.get_running_loop().create_future()
        self.ask(await self.wire(), message, lambda *came: answer.set_result(came))
        return await answer

    async def request(self) -> None:
        """One request, and one return where the plan obeys."""
        message = self.message()
        seen, head = await self.once(message)
        self.seen.append(seen)
        if self.plan.obey and seen.status >= 400 and (found := BACK.search(head)):
            await asyncio.sleep(int(found.group(1)) / 1000)
            seen.returned = (await self.once(message))[0].status

    def read(self) -> None:
        """What the replies said, once the load is over: while it lasts that would cost the server."""
        for seen, head, body in self.replies:
            if self.plan.timing and (found := TIMING.search(head)):
                seen.timing = found.group(1).decode()
            if seen.status >= 400 and (found := CODE.search(body)):
                seen.code = found.group(1).decode()
            if seen.status >= 400 and (found := BACK.search(head)):
                seen.back_ms = int(found.group(1))

    async def open_loop(self) -> None:
        """Arrivals by the clock, whatever comes back."""
        inside: set[asyncio.Task[None]] = set()
        at = self.began
        while at < self.began + self.plan.seconds:
            at += random.expovariate(self.plan.rate)
            if (pause := at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            if not self.plan.obey and (wire := self.idle_wire()) is not None:
                self.under_way += 1
                self.ask(wire, self.message(), self.settle)
                continue
            task = asyncio.create_task(self.request())
            inside.add(task)
            task.add_done_callback(inside.discard)
        if inside:
            await asyncio.wait(inside, timeout=60)
        last = time.monotonic() + 60
        while self.under_way and time.monotonic() < last:
            await asyncio.sleep(0.01)

    def settle(self, seen: Seen, _: bytes) -> None:
        """An answer that no task waited for."""
        self.under_way -= 1
        self.seen.append(seen)

    async def closed_loop(self) -> None:
        """So many clients, one request after another each."""

        async def client() -> None:
            while (self.plan.requests and self.next < self.last) or (
                not self.plan.requests and time.monotonic() < self.began + self.plan.seconds
            ):
                await self.request()
                if self.plan.pause_s:
                    await asyncio.sleep(self.plan.pause_s)

        await asyncio.gather(*(client() for _ in range(self.plan.clients)))

    async def run(self) -> dict[str, Any]:
        """Carry it out."""
        number = self.next = first_number()
        self.last = number + self.plan.requests
        self.began = time.monotonic()
        await (self.open_loop() if self.plan.rate else self.closed_loop())
        took = time.monotonic() - self.began
        own_s = sum(os.times()[:2])
        self.read()
        rows = [[getattr(seen, name) for name in Seen.__slots__] for seen in self.seen]
        return {"took": took, "cpu_s": own_s, "seen": rows}


def main() -> None:
    """A plan in, what was seen out."""
    plan = Plan(**json.loads(sys.stdin.read()))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(Load(plan).run())
    Path(plan.out).write_bytes(orjson.dumps(result))


if __name__ == "__main__":
    main()
