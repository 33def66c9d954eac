"""A chat model elsewhere on offer: admission and lane as for every model; a stream keeps its slot.

One request is one run. Errors before the first piece of a stream are answers like any other; after it
they can only end the stream. A caller who hangs up gives the run up, and with it the upstream's work.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.core.clock import Clock
from tailrace.core.errors import TailraceError
from tailrace.core.events import Refused
from tailrace.core.lane import Runner
from tailrace.core.work import StagedRun, Stamps, Work
from tailrace.models.remote import ChatCall, Opened, RemoteChat
from tailrace.serve.exchange import Exchange
from tailrace.serve.served import ServedModel, Terms


@dataclass(frozen=True, slots=True)
class Completed:
    """A whole answer, or a stream that has begun; and who gave it where it was not the one asked."""

    body: bytes = b""
    stream: "ChatStream | None" = None
    fallback: str = ""


class ChatStream:
    """A stream that has begun: its pieces, and the work behind it."""

    def __init__(self, opened: Opened, work: Work, done: asyncio.Future[Any]) -> None:
        self.work = work
        self._opened = opened
        self._done = done

    async def read(self) -> bytes | None:
        """The next piece, None at the end.

        Raises:
            TailraceError: what broke the stream off.

        """
        if not self._opened.pieces.empty():
            return self._opened.pieces.get_nowait()
        piece = asyncio.ensure_future(self._opened.pieces.get())
        try:
            await asyncio.wait({piece, self._done}, return_when=asyncio.FIRST_COMPLETED)
            if piece.done() or not self._opened.pieces.empty():
                return await piece
            self._done.result()
            return None
        finally:
            piece.cancel()

    def give_up(self) -> None:
        """Nobody reads any more; does nothing to a stream that is through."""
        self._done.cancel()


class ServedChat:
    """Completes chats through the lane."""

    def __init__(self, served: ServedModel, clock: Clock) -> None:
        self.served = served
        self._clock = clock
        self.fallback: tuple[ServedChat, frozenset[str]] | None = None
        """Who answers instead, and after which errors."""

    async def complete(
        self, exchange: Exchange, body: dict[str, Any], terms: Terms, *, stream: bool
    ) -> Completed:
        """The answer to `body`, or of the fallback where there is one for the error.

        Raises:
            Rejected: not admitted.
            CallerLeft: after the run was given up.
            TailraceError: what the upstream did instead of answering.

        """
        try:
            return await self._complete(exchange, body, terms, stream=stream)
        except TailraceError as error:
            if self.fallback is None or error.code not in self.fallback[1]:
                raise
            other = self.fallback[0]
            # Its own fallback is not asked: one step, never a round trip.
            made = await other._complete(exchange, body, terms, stream=stream)  # noqa: SLF001
            return Completed(made.body, made.stream, other.served.name)

    def check(self, terms: Terms) -> None:
        """Whether a call would be let in now; raises Rejected with when to come back, as `open` would."""
        self._admitted(self._work(None, terms))

    async def open(self, body: dict[str, Any], terms: Terms) -> ChatStream:
        """A stream that has begun, for a caller in the house; raises as `complete`, without a fallback.

        Whoever is given it must read it to the end or give it up.
        """
        opened = Opened()
        work, done = self._enter(ChatCall(body, opened), terms)
        try:
            await _begun(opened, done)
        except BaseException:
            done.cancel()
            raise
        return ChatStream(opened, work, done)

    async def _complete(
        self, exchange: Exchange, body: dict[str, Any], terms: Terms, *, stream: bool
    ) -> Completed:
        call = ChatCall(body, Opened() if stream else None)
        served = self.served
        exchange.account.through(served.door.name, served.lane.name, served.info.kind, served.name)
        with exchange.part("admit"):
            work, done = self._enter(call, terms)
        try:
            if call.opened is None:
                answer = await exchange.unless_left(done)
                return Completed(answer)
            await exchange.unless_left(_begun(call.opened, done))
            return Completed(stream=ChatStream(call.opened, work, done))
        except BaseException:
            done.cancel()
            raise
        finally:
            self._stamp(exchange, work, call)

    def _enter(self, call: ChatCall, terms: Terms) -> tuple[Work, asyncio.Future[Any]]:
        """Verdict and seat in one step."""
        work = self._work(call, terms)
        latest = self._admitted(work)
        return work, self.served.lane.submit(work, latest)

    def _work(self, call: ChatCall | None, terms: Terms) -> Work:
        return Work(
            call,
            Stamps(self._clock.now()),
            door=self.served.door.name,
            caller=terms.caller,
            yields=1.0 if terms.bulk else 0.0,
            deadline=terms.deadline,
        )

    def _admitted(self, work: Work) -> float:
        """The latest start that all policies allow."""
        served = self.served
        try:
            return served.door.admission.admit(work, served.lane.view(work))
        except TailraceError as refusal:
            refusal.back_s = served.door.refuse(refusal, served.lane.view())
            served.lane.events.emit(Refused(served.lane.name, served.door.name, refusal.code))
            raise

    def _stamp(self, exchange: Exchange, work: Work, call: ChatCall) -> None:
        """Take over the moments of the run; they lead to the answer, or to a stream's first piece."""
        if not call.moments:
            exchange.stamps.close("wait", work.stamps.last)
        for part, at in call.moments:
            exchange.stamps.close(part, at)
        exchange.stamps.close("handover", exchange.clock.now())


async def _begun(opened: Opened, done: asyncio.Future[Any]) -> None:
    """Wait for the first piece; an error that comes before it is raised."""
    begun = asyncio.ensure_future(opened.begun.wait())
    try:
        await asyncio.wait({begun, done}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.begun.is_set():
            done.result()
    finally:
        begun.cancel()


class _Noted:
    """A run whose moments are also written down for the one who answers before it ends."""

    def __init__(self, run: StagedRun, call: ChatCall, clock: Clock) -> None:
        self._run = run
        self._call = call
        self._clock = clock
        self.begin: Callable[[str], None] = run.begin
        self.wanted = run.wanted

    def mark(self, part: str) -> None:
        self._run.mark(part)
        self._call.moments.append((part, self._clock.now()))


def chat_runner(model: RemoteChat, clock: Clock) -> Runner:
    """The lane's callable: a run of one call."""

    async def run(batch: Sequence[ChatCall], run: StagedRun) -> Sequence[Any]:
        (call,) = batch
        call.moments.append(("wait", clock.now()))
        return await model.complete(batch, _Noted(run, call, clock))

    return run
