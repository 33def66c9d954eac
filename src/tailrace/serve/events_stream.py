"""Server-sent events: one snapshot of the present after another, at most ten a second, only on change.

Each open page holds one stream; there is a bound on streams, a heartbeat, and numbering that goes on
when a page comes back with Last-Event-ID.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tailrace.core.clock import Clock
from tailrace.core.errors import Rejected
from tailrace.serve.problems import problem_answer

EVERY_S = 0.1
HEARTBEAT_S = 15.0


class TooManyStreams(Rejected):
    """Too many pages are open; close one, or read /api/stats instead."""

    code = "rate-limited"


class EventStream:
    """Streams of one snapshot function.

    Where two snapshots are equal nothing is sent, so a snapshot should hold no clock that only ticks.
    """

    def __init__(self, snapshot: Callable[[], Any], clock: Clock, streams_max: int) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._streams_max = streams_max
        self._number = 0
        self._latest = b""
        self._closing = asyncio.Event()
        self.open = 0

    def close(self) -> None:
        """End every stream: the server is stopping."""
        self._closing.set()

    def respond(self, request: Request) -> Response:
        """One page's stream."""
        if self.open >= self._streams_max:
            made = problem_answer(TooManyStreams(), back_s=(5.0, 5.0))
            return Response(made.body, made.status, made.headers)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        events = self._events(request)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    def _present(self) -> tuple[int, bytes]:
        """The number and bytes of the present; the number rises when something changed."""
        now = orjson.dumps(self._snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
        if now != self._latest:
            self._number += 1
            self._latest = now
        return self._number, self._latest

    async def _events(self, request: Request) -> AsyncIterator[bytes]:
        last_id = request.headers.get("last-event-id") or request.query_params.get(
            "last_event_id", ""
        )
        seen = int(last_id) if last_id.isdecimal() and len(last_id) <= 15 else 0
        self._number = max(self._number, seen)  # a page from before a restart: numbers go on rising
        seen = 0
        spoke = self._clock.now()
        self.open += 1
        try:
            yield b"retry: 1000\n\n"
            while not self._closing.is_set():
                number, present = self._present()
                if number != seen:
                    seen, spoke = number, self._clock.now()
                    yield b"event: stats\nid: %d\ndata: %b\n\n" % (number, present)
                elif self._clock.now() - spoke > HEARTBEAT_S:
                    spoke = self._clock.now()
                    yield b": still here\n\n"
                try:
                    async with asyncio.timeout(EVERY_S):
                        await self._closing.wait()
                except TimeoutError:
                    continue
        finally:
            self.open -= 1
