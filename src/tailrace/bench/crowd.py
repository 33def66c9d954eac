"""A crowd: N requests to one door at the same moment, each on its own connection made beforehand.

For the ticket door each caller then asks for its ticket until it is done. Speaks HTTP only.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from tailrace.bench.http import Connection, HungUp, Response
from tailrace.wire.headers import parse_server_timing

DOORS = {
    "naive": "/naive/predict",
    "limited": "/limited/predict",
    "batched": "/batched/predict",
    "queue": "/queue/jobs",
}
CROWD_MAX = 200
POLL_S = 0.05
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(slots=True)
class Caller:
    """What one of the crowd saw; milliseconds on its own clock, from the moment all were let go."""

    i: int
    text: str
    sent_ms: float = 0.0
    round_trip_ms: float | None = None
    status: int = 0
    """0 where the connection was closed without an answer."""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    ticket: Any = None
    """The ticket's last state, for the ticket door."""
    done_ms: float | None = None
    """Sent to the answer in hand; for a ticket, until it was done."""
    done: bool = False
    error: str = ""

    @property
    def timing(self) -> dict[str, float]:
        """The server's own parts, in milliseconds."""
        return parse_server_timing(self.headers.get("server-timing", ""))

    @property
    def answered(self) -> bool:
        """Whether the caller has its topics."""
        return self.done and self.status in {200, 202} and not self.error


@asynccontextmanager
async def _connections(url: str, count: int) -> AsyncIterator[list[Connection]]:
    made = await asyncio.gather(
        *(Connection.open(url) for _ in range(count)), return_exceptions=True
    )
    opened = [connection for connection in made if isinstance(connection, Connection)]
    try:
        for failure in made:
            if isinstance(failure, BaseException):
                raise failure
        yield opened
    finally:
        # Who is cancelled gets no further than the first await: hang up before it.
        for connection in opened:
            connection.hang_up()
        await asyncio.gather(*(connection.close() for connection in opened))


async def fire(
    url: str, door: str, texts: Sequence[str], *, patience_s: float = 300.0
) -> AsyncGenerator[Caller, None]:
    """Send all texts to `door` of the API at `url` (".../api") at once; yield callers as news comes.

    The ticket door yields a caller twice: with its ticket, and when it is done. `patience_s` bounds the
    whole.

    Raises:
        CannotConnect: nobody answers at the address.

    """
    if not 1 <= len(texts) <= CROWD_MAX:
        raise ValueError(f"a crowd has 1 to {CROWD_MAX} callers")
    base = urlsplit(url).path.rstrip("/")
    news: asyncio.Queue[Caller] = asyncio.Queue()
    async with _connections(url, len(texts)) as connections:
        start = time.monotonic()
        callers = [Caller(i, text) for i, text in enumerate(texts)]
        tasks = [
            asyncio.create_task(_call(connection, base, door, caller, start, news))
            for connection, caller in zip(connections, callers, strict=True)
        ]
        try:
            async with asyncio.timeout(patience_s):
                remaining = len(callers)
                while remaining:
                    caller = await news.get()
                    remaining -= caller.done
                    yield caller
        except TimeoutError:
            for caller in callers:
                if not caller.done:
                    caller.done, caller.error = True, f"no answer within {patience_s:g} s"
                    yield caller
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _call(
    connection: Connection,
    base: str,
    door: str,
    caller: Caller,
    start: float,
    news: asyncio.Queue[Caller],
) -> None:
    body = json.dumps({"text": caller.text}).encode()
    try:
        response = await connection.request("POST", base + DOORS[door], body, JSON)
        _note(caller, response, start)
        if caller.status < 300 and not _plausible(caller.body, door):
            raise ValueError(response.body[:40])
        if door == "queue" and caller.status == 202:
            caller.ticket = caller.body
            news.put_nowait(replace(caller))
            await _follow(connection, base, caller, response.sent)
    except HungUp as error:
        caller.error = f"hung up: {error}"
    except (ValueError, KeyError, TypeError) as error:
        caller.error = f"this is no answer of a review box: {error!r}"
        caller.body = caller.ticket = None
    caller.done = True
    news.put_nowait(replace(caller))


def _plausible(body: Any, door: str) -> bool:
    """Whether this is the body of a good answer at all: somebody else may listen at the address."""
    if not isinstance(body, dict):
        return False
    if door == "queue":
        return {"job_id", "status"} <= body.keys()
    topics = body.get("topics")
    return isinstance(topics, list) and all(
        isinstance(topic, dict) and {"label", "score"} <= topic.keys() for topic in topics
    )


def _note(caller: Caller, response: Response, start: float) -> None:
    caller.sent_ms = (response.sent - start) * 1000
    caller.round_trip_ms = caller.done_ms = response.seconds * 1000
    caller.status, caller.headers = response.status, response.headers
    try:
        caller.body = json.loads(response.body)
    except ValueError:
        caller.body = None


async def _follow(connection: Connection, base: str, caller: Caller, sent: float) -> None:
    """Ask for the ticket until it is done."""
    path = f"{base}/queue/jobs/{caller.ticket['job_id']}"
    while caller.ticket["status"] in {"queued", "running"}:
        await asyncio.sleep(POLL_S)
        response = await connection.request("GET", path)
        if response.status != 200:
            caller.error = f"the ticket's state was answered with {response.status}"
            return
        caller.ticket = json.loads(response.body)
        caller.done_ms = (response.finished - sent) * 1000
    if caller.ticket["status"] != "done":
        caller.error = f"the ticket ended as {caller.ticket['status']}"
