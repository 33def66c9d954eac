"""One request and its answer: the chain of stamps from arrival to the last byte made.

Everything an endpoint does happens inside a part of the chain; errors become problems here, and a
caller who hangs up ends the work here. It knows no door and no dialect.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tailrace.core.clock import Clock
from tailrace.core.errors import InputError, TailraceError
from tailrace.core.work import Stamps
from tailrace.serve.account import ACCOUNT, Account
from tailrace.serve.arrival import ARRIVED
from tailrace.serve.connection import CALLER, Presence
from tailrace.serve.problems import Answer, problem_answer
from tailrace.wire.headers import SERVER_TIMING, X_DEADLINE_MS, server_timing

log = logging.getLogger(__name__)

T = TypeVar("T")

CALLER_LEFT = 499
"""Counted, never seen: nobody is there to read it."""


SENDING_S, SENDING_SHARE = 0.01, 0.05
"""How long before a caller's deadline the work ends: an answer takes time to be written and sent.

So much, or this share of what the caller gave, whichever is less.
"""


class CallerLeft(Exception):
    """The caller hung up before the answer was ready."""


class Part:
    """A block of code that is one part of a chain; a class, for it is entered often."""

    __slots__ = ("_journey", "_name")

    def __init__(self, journey: "Journey", name: str) -> None:
        self._journey = journey
        self._name = name

    def __enter__(self) -> None:
        """The part began where the one before it ended."""

    def __exit__(self, *error: object) -> None:
        """The part is over."""
        self._journey.stamps.close(self._name, self._journey.clock.now())


class Journey:
    """Work on its way through a lane, with the chain of its stamps; nobody in particular waits for it."""

    def __init__(self, clock: Clock, start: float | None = None) -> None:
        self.clock = clock
        self.stamps = Stamps(clock.now() if start is None else start)
        self.caller = ""
        self.account = Account()

    def part(self, name: str) -> Part:
        """Close the part `name` when the block ends, however it ends."""
        return Part(self, name)

    async def unless_left(self, work: Awaitable[T]) -> T:
        """What comes of `work`: inside the house nobody hangs up."""
        return await work


class Exchange(Journey):
    """A request on its way: its stamps, and what happens to a caller who leaves."""

    def __init__(self, request: Request, clock: Clock) -> None:
        super().__init__(clock, request.scope[ARRIVED])
        self.request = request
        self.account = request.scope[ACCOUNT]

    def deadline(self) -> float:
        """The last moment for an answer that is to arrive by X-Deadline-Ms; `inf` without it.

        Raises:
            InputError: it is not a positive number.

        """
        given = self.request.headers.get(X_DEADLINE_MS)
        if given is None:
            return inf
        try:
            allowed_ms = float(given)
        except ValueError:
            allowed_ms = -1.0
        if not 0 < allowed_ms < inf:
            raise InputError(f"{X_DEADLINE_MS} must be a positive number of milliseconds.")
        allowed_s = allowed_ms / 1000
        return self.stamps.start + allowed_s - min(SENDING_S, SENDING_SHARE * allowed_s)

    async def unless_left(self, work: Awaitable[T]) -> T:
        """What comes of `work`; if the caller hangs up first, cancel it.

        The request's body must have been read before.

        Raises:
            CallerLeft: after the work was cancelled and has ended.

        """
        doing = asyncio.ensure_future(work)
        left = False

        def leave() -> None:
            nonlocal left
            left = doing.cancel()

        try:
            with self._minding(leave):
                return await doing
        except asyncio.CancelledError:
            if left:
                raise CallerLeft from None
            raise

    @contextmanager
    def _minding(self, leave: Callable[[], None]) -> Iterator[None]:
        """Call `leave` if the caller hangs up within the block."""
        presence: Presence | None = self.request.scope.get(CALLER)
        if presence is not None:
            presence.watch(leave)
            try:
                yield
            finally:
                presence.unwatch(leave)
            return

        async def watch() -> None:
            while (await self.request.receive())["type"] != "http.disconnect":
                pass
            leave()

        watching = asyncio.ensure_future(watch())
        try:
            yield
        finally:
            watching.cancel()


async def answer(
    request: Request,
    clock: Clock,
    endpoint: Callable[[Exchange], Awaitable[Answer]],
    on_error: Callable[[TailraceError], Answer] = problem_answer,
) -> Response:
    """Run an endpoint and send what it answers, stamped; `on_error` gives its typed errors a shape."""
    exchange = Exchange(request, clock)
    try:
        made = await endpoint(exchange)
    except (CallerLeft, ClientDisconnect):
        exchange.account.stamps = exchange.stamps
        return Response(status_code=CALLER_LEFT)
    except TailraceError as error:
        exchange.account.error = error.code
        made = on_error(error)
    exchange.stamps.close("serialize", clock.now())
    exchange.account.stamps = exchange.stamps
    headers = {**made.headers, SERVER_TIMING: server_timing(exchange.stamps.parts())}
    return made.response(headers)
