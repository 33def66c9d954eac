"""What is sent to a peer, and what came back: six bounded scenarios over loopback.

The client is asyncio streams and a few lines of HTTP/1.1, so that it takes little of the cores it shares
with the server; what it takes is measured and kept.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from peer_process import Peer, Process, alive, busy_s
from peer_shapes import Peer as Facts
from peer_shapes import body

from tailrace.bench.reviews import EXAMPLES

STEPS = (1, 2, 4, 8, 16, 32)
BURST = 80
LEAVERS = 40
IN_FLIGHT = 24
BULK_TEXTS = 8
POISON = "this text makes the model fail"
PATIENCE_S = 60.0
DEADLINE_MS = 500
QUIET_S = 10.0
OFFERED_MAX = 4000
LOST = 0
LEFT = -1


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of all are at or under (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


@dataclass(slots=True)
class Reply:
    """What a request came to: an HTTP status, LOST (closed without an answer) or LEFT (we left)."""

    status: int
    seconds: float
    headers: dict[str, str] = field(default_factory=dict)


class Client:
    """One connection; opened at need."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> None:
        """Open it, unless it is open."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, request: bytes, patience_s: float = PATIENCE_S) -> Reply:
        """Send, and wait for the answer for at most `patience_s`; then leave."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(patience_s):
                await self.connect()
                assert self._streams is not None
                reader, writer = self._streams
                writer.write(request)
                status, headers = await _read(reader)
        except TimeoutError:
            self.leave()
            return Reply(LEFT, time.monotonic() - began)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self.leave()
            return Reply(LOST, time.monotonic() - began)
        seconds = time.monotonic() - began
        if headers.get("connection", "").lower() == "close":
            self.leave()
        return Reply(status, seconds, headers)

    async def send(self, request: bytes) -> None:
        """Send, and do not wait."""
        await self.connect()
        assert self._streams is not None
        self._streams[1].write(request)
        await self._streams[1].drain()

    def leave(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split()[1])
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if "content-length" in headers:
        await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    return status, headers


def _statuses(replies: list[Reply]) -> dict[str, int]:
    names = {LOST: "closed without an answer", LEFT: "left"}
    counts: dict[str, int] = {}
    for reply in replies:
        name = names.get(reply.status, str(reply.status))
        counts[name] = counts.get(name, 0) + 1
    return counts


class Requests:
    """Requests that nobody has sent before, so that no cache answers."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._numbers = itertools.count(1)

    def short(self) -> bytes:
        """One text of some 20 tokens."""
        number = next(self._numbers)
        return self.of([f"{EXAMPLES[number % len(EXAMPLES)]} #{number}"])

    def bulk(self) -> bytes:
        """Eight texts of some 60 tokens each."""
        texts = []
        for _ in range(BULK_TEXTS):
            number = next(self._numbers)
            three = [EXAMPLES[(number + i) % len(EXAMPLES)] for i in range(3)]
            texts.append(" ".join(three) + f" #{number}")
        return self.of(texts)

    def of(self, texts: list[str], deadline_ms: int | None = None) -> bytes:
        """The bytes of one request."""
        made = body(self._facts.shape, self._facts.model, texts)
        lines = [
            f"POST {self._facts.path} HTTP/1.1",
            "Host: 127.0.0.1",
            "Content-Type: application/json",
            f"Content-Length: {len(made)}",
        ]
        if deadline_ms is not None:
            lines.append(f"X-Deadline-Ms: {deadline_ms}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + made

    def hurried(self) -> bytes:
        """A short text that must be answered in DEADLINE_MS."""
        number = next(self._numbers)
        return self.of([f"{EXAMPLES[number % len(EXAMPLES)]} #{number}"], DEADLINE_MS)


Say = Callable[[str], None]


class Scenarios:
    """All that one run of one peer is put through, in order; `found` is what was seen."""

    def __init__(self, peer: Peer, facts: Facts, step_s: float, say: Say) -> None:
        self.peer = peer
        self.facts = facts
        self.found: dict[str, Any] = {}
        self._requests = Requests(facts)
        self._step_s = step_s
        self._say = say
        self._best = 0.0
        self._solo_s = 0.0

    async def all(self) -> None:
        """Every scenario; what fails of one is written down and the next is tried."""
        for name, scenario in (
            ("staircase", self.staircase),
            ("burst", self.burst),
            ("hang_ups", self.hang_ups),
            ("overload", self.overload),
            ("memory", self.memory),
            ("sigterm", self.sigterm),
        ):
            self._say(name)
            self.found[name] = await self._bounded(scenario)

    async def _bounded(self, scenario: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(180):
                return await scenario()
        except TimeoutError:
            return {"failed": "took longer than 180 s"}
        except OSError as fault:
            return {"failed": f"{type(fault).__name__}: {fault}"}

    async def staircase(self) -> dict[str, Any]:
        """Closed loops of 1, 2, 4 ... clients with short texts."""
        await self._loop(4, 1.0)  # warm-up
        busy, ours, own, began = busy_s(), self.peer.cpu_s(), time.process_time(), time.monotonic()
        steps = [await self._loop(clients, self._step_s) for clients in STEPS]
        seconds = time.monotonic() - began
        own = time.process_time() - own
        ours = self.peer.cpu_s() - ours
        others = busy_s() - busy - ours - own
        answers = sum(step["n"] - step["bad"] for step in steps)
        self._best = max(step["per_s"] for step in steps)
        self._solo_s = steps[0]["p50_ms"] / 1000
        return {
            "steps": steps,
            "cpu_ms_per_answer": 1000 * ours / max(1, answers),
            "generator_cores": own / seconds,
            "others_cores": max(0.0, others / seconds),
        }

    async def _loop(self, clients: int, seconds: float) -> dict[str, Any]:
        ends = time.monotonic() + seconds
        replies: list[Reply] = []

        async def one() -> None:
            client = Client(self.peer.port)
            while time.monotonic() < ends:
                reply = await client.ask(self._requests.short())
                replies.append(reply)
                if reply.status == LOST:
                    await asyncio.sleep(0.01)
            client.leave()

        began = time.monotonic()
        await asyncio.gather(*(one() for _ in range(clients)))
        took = time.monotonic() - began
        good = [reply.seconds * 1000 for reply in replies if reply.status == 200] or [0.0]
        return {
            "clients": clients,
            "n": len(replies),
            "bad": sum(reply.status != 200 for reply in replies),
            "per_s": sum(reply.status == 200 for reply in replies) / took,
            "p50_ms": median(good),
            "p95_ms": quantile(good, 0.95),
            "worst_ms": max(good),
        }

    async def burst(self) -> dict[str, Any]:
        """Eighty at once, all connected before; one of them fails inside the model."""
        clients = [Client(self.peer.port) for _ in range(BURST)]
        await asyncio.gather(*(client.connect() for client in clients))
        requests = [self._requests.short() for _ in clients]
        bad = BURST // 2 if self.facts.poison else -1
        if self.facts.poison:
            requests[bad] = self._requests.of([POISON])
        replies = await asyncio.gather(
            *(client.ask(request) for client, request in zip(clients, requests, strict=True))
        )
        for client in clients:
            client.leave()
        innocent = [reply for i, reply in enumerate(replies) if i != bad]
        good = [reply.seconds for reply in innocent if reply.status == 200] or [0.0]
        return {
            "asked": len(innocent),
            "answered": sum(reply.status == 200 for reply in innocent),
            "refused": sum(reply.status in {429, 503} for reply in innocent),
            "failed": sum(reply.status not in {200, 429, 503} for reply in innocent),
            "worst_s": max(good),
            "poison": replies[bad].status if self.facts.poison else None,
            "alive": (await Client(self.peer.port).ask(self._requests.short())).status == 200,
        }

    async def hang_ups(self) -> dict[str, Any]:
        """Forty send work and leave; then one live client asks."""
        client = Client(self.peer.port)
        solo = [(await client.ask(self._requests.short())).seconds for _ in range(9)]
        leaving = [Client(self.peer.port) for _ in range(LEAVERS)]
        await asyncio.gather(*(one.send(self._requests.bulk()) for one in leaving))
        await asyncio.sleep(0.05)
        for one in leaving:
            one.leave()
        live = await client.ask(self._requests.short())
        await self._quiet(client, median(solo))
        return {
            "solo_ms": median(solo) * 1000,
            "live_ms": live.seconds * 1000,
            "status": live.status,
        }

    async def _quiet(self, client: Client, solo_s: float) -> None:
        ends = time.monotonic() + QUIET_S
        while time.monotonic() < ends:
            if (await client.ask(self._requests.short(), QUIET_S)).seconds < 5 * solo_s:
                return
            await asyncio.sleep(0.1)

    async def overload(self) -> dict[str, Any]:
        """Twice its own capacity, open loop, every client with a deadline at which it leaves."""
        rate = 2 * self._best
        seconds = min(4.0, OFFERED_MAX / rate)
        count = int(rate * seconds)
        idle: list[Client] = []
        replies: list[Reply] = []

        async def one() -> None:
            client = idle.pop() if idle else Client(self.peer.port)
            reply = await client.ask(self._requests.hurried(), DEADLINE_MS / 1000)
            replies.append(reply)
            if reply.status > 0:
                idle.append(client)

        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for i in range(count):
                await asyncio.sleep(max(0.0, began + i / rate - time.monotonic()))
                group.create_task(one())
        took = time.monotonic() - began
        for client in idle:
            client.leave()
        refusals = [reply for reply in replies if reply.status in {429, 503}]
        in_time = sum(reply.status == 200 for reply in replies)
        await self._quiet(Client(self.peer.port), self._solo_s)
        return {
            "offered_per_s": rate,
            "sent_per_s": count / took,
            "offered": count,
            "in_time": in_time,
            "in_time_per_s": in_time / took,
            "in_time_over_capacity": in_time / took / self._best,
            "refused": len(refusals),
            "left": sum(reply.status == LEFT for reply in replies),
            "lost": sum(reply.status == LOST for reply in replies),
            "refusal_p95_ms": quantile([r.seconds * 1000 for r in refusals], 0.95)
            if refusals
            else None,
            "refusal_p50_ms": median(r.seconds * 1000 for r in refusals) if refusals else None,
            "statuses": _statuses(replies),
            "retry_after": sum("retry-after" in reply.headers for reply in refusals),
        }

    async def memory(self) -> dict[str, Any]:
        """Of the whole tree, after the work."""
        rss, pss = self.peer.memory_mib()
        return {"rss_mib": rss, "pss_mib": pss, "processes": len(self.peer.tree())}

    async def sigterm(self) -> dict[str, Any]:
        """SIGTERM with 24 requests in flight; ends the run."""
        clients = [Client(self.peer.port) for _ in range(IN_FLIGHT)]
        await asyncio.gather(*(client.connect() for client in clients))
        asked = [asyncio.create_task(client.ask(self._requests.bulk())) for client in clients]
        await asyncio.sleep(0.1)
        family = self.peer.tree()
        answered_before = sum(task.done() for task in asked)
        began = time.monotonic()
        await asyncio.to_thread(self.peer.stop)
        took = time.monotonic() - began
        survivors = self._survivors(family)
        still = bool(survivors) and await asyncio.to_thread(self.peer.answers)
        await asyncio.wait(asked, timeout=15)
        self.peer.kill(survivors)
        replies = await asyncio.gather(*asked)
        return {
            "in_flight": IN_FLIGHT - answered_before,
            "answered": sum(reply.status == 200 for reply in replies),
            "told": sum(reply.status in {429, 503} for reply in replies),
            "lost": sum(reply.status not in {200, 429, 503} for reply in replies),
            "exit_s": took,
            "statuses": _statuses(replies),
            "survivors": len(survivors),
            "port_still_answers": still,
        }

    def _survivors(self, family: set[Process]) -> set[Process]:
        time.sleep(0.5)
        return {process for process in family | self.peer.tree() if alive(process)}
