"""POST /api/books/recommend: a turn as server-sent events; a caller who leaves ends it and its call upstream.

Refusals come before the stream begins, as problem details with when to come back.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tailrace.apps.books.turn.reasons import CARDS_MAX
from tailrace.apps.books.turn.spec import MESSAGES_MAX, Message
from tailrace.apps.books.turn.turn import Turn
from tailrace.core.errors import InputError, Rejected
from tailrace.serve.body import read_json
from tailrace.serve.exchange import Exchange
from tailrace.serve.problems import Answer
from tailrace.wire.sse import event
from tailrace.wire.tracing import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    REQUEST_STREAM,
)

RECOMMEND = "recommend"
"""The door of turns."""
UNDER_WAY = {"": "spec", "spec": "search"}
"""What a turn that was cut short was doing, by the part that ended last."""


class TurnsFull(Rejected):
    """As many turns are under way as may be at once."""

    code = "lane-full"


class Asked(BaseModel):
    """The body of a turn."""

    model_config = ConfigDict(extra="forbid")
    messages: list[Message] = Field(min_length=1, max_length=MESSAGES_MAX)
    count: int | None = Field(None, ge=1, le=CARDS_MAX)


Begin = Callable[[Asked, str], Turn]
"""Makes a turn for a caller. Raises Rejected where it may not begin."""


class Turns:
    """The endpoint, and how many of its streams are open."""

    def __init__(self, begin: Begin, model: str, *, most: int, body_max_bytes: int) -> None:
        self._begin = begin
        self._model = model
        self._most = most
        self._body_max_bytes = body_max_bytes
        self.open = 0

    async def endpoint(self, exchange: Exchange) -> Answer:
        """Check, admit, and answer with a stream."""
        with exchange.part("parse"):
            asked = _checked(await read_json(exchange.request, self._body_max_bytes))
        with exchange.part("admit"):
            if self.open >= self._most:
                raise TurnsFull(retry_after_s=5.0)
            turn = self._begin(asked, exchange.caller)
        headers = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
        }
        exchange.account.through(RECOMMEND, RECOMMEND, RECOMMEND, self._model)
        return _TurnAnswer(200, b"", headers, turn, self, exchange)


@dataclass(frozen=True, slots=True)
class _TurnAnswer(Answer):
    """An answer whose body is a turn."""

    turn: Turn
    turns: Turns
    exchange: Exchange

    def response(self, headers: dict[str, str]) -> Response:
        """The stream, ready to be sent."""
        return _Stream(self, headers)

    def tell(self) -> None:
        """The stages of the turn, as far as it came, are parts of the request."""
        turn, stamps, account = self.turn, self.exchange.stamps, self.exchange.account
        last = ""
        for last, at in turn.marks:
            if last:
                stamps.close(last, at)
        under_way = UNDER_WAY.get(last) if account.left or turn.broke else None
        stamps.close(under_way or "transfer", self.exchange.clock.now())
        account.error = turn.broke
        if account.traced:
            tokens = turn.tokens
            account.about |= {
                INPUT_TOKENS: tokens.prompt,
                OUTPUT_TOKENS: tokens.completion,
                REASONING_TOKENS: tokens.reasoning,
                REQUEST_STREAM: True,
            }


class _Stream(Response):
    """Sends a turn's events as they happen, until the turn or the caller ends."""

    def __init__(self, answer: _TurnAnswer, headers: dict[str, str]) -> None:
        super().__init__(status_code=answer.status, headers=headers)
        del self.headers["content-length"]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then every event."""
        del scope
        turns = self._answer.turns
        turns.open += 1
        leaving = asyncio.ensure_future(_left(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
            self._answer.exchange.account.left = not sending.done()
            if sending.done():
                sending.result()
        finally:
            turns.open -= 1
            leaving.cancel()
            sending.cancel()
            await asyncio.wait({leaving, sending})
            self._answer.tell()

    async def _send(self, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        async with aclosing(self._answer.turn.events()) as events:
            async for happened in events:
                body = event(happened.name, happened.body)
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _checked(body: dict[str, Any]) -> Asked:
    try:
        asked = Asked.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"`{where}`: {first['msg']}.") from None
    for message in asked.messages:
        if "\0" in message.content or not _encodable(message.content):
            raise InputError("`messages`: a text holds something that is no character.")
    if asked.messages[-1].role != "user" or not asked.messages[-1].content.strip():
        raise InputError("`messages`: the last one is what the user asks for.")
    return asked


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
