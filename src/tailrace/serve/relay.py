"""Passes a chat stream on to the caller, no faster than it is read; a caller who leaves ends it.

Once the head is sent an error can only be an event of the stream; the last line is a comment with the
parts of the whole time, which clients of event streams skip.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tailrace.core.clock import Clock
from tailrace.core.errors import TailraceError
from tailrace.core.work import Stamps
from tailrace.serve.account import Account
from tailrace.serve.chat import ChatStream
from tailrace.serve.problems import Answer
from tailrace.serve.usage import Heard
from tailrace.wire.headers import SERVER_TIMING, server_timing

Words = Callable[[TailraceError], dict[str, Any]]
"""The dialect's words for an error in mid-stream."""


@dataclass(frozen=True, slots=True)
class StreamAnswer(Answer):
    """An answer whose body comes by and by."""

    stream: ChatStream
    stamps: Stamps
    clock: Clock
    words: Words
    account: Account

    def response(self, headers: dict[str, str]) -> Response:
        """The relay, ready to be sent."""
        return _Relay(self, headers)


class _Relay(Response):
    """A response that reads the stream while it sends."""

    def __init__(self, answer: StreamAnswer, headers: dict[str, str]) -> None:
        super().__init__(status_code=answer.status, headers=headers)
        del self.headers["content-length"]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and then the pieces until the stream or the caller ends."""
        del scope
        leaving = asyncio.ensure_future(_left(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
            self._answer.account.left = not sending.done()
            if sending.done():
                sending.result()
        finally:
            self._answer.stream.give_up()
            leaving.cancel()
            sending.cancel()
            await asyncio.wait({leaving, sending})

    async def _send(self, send: Send) -> None:
        answer = self._answer
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        heard = Heard() if answer.account.traced else None
        try:
            while (piece := await answer.stream.read()) is not None:
                if heard is not None:
                    heard.piece(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TailraceError as error:
            answer.account.error = error.code
            said = b"data: " + orjson.dumps(answer.words(error)) + b"\n\n"
            await send({"type": "http.response.body", "body": said, "more_body": True})
        if heard is not None:
            answer.account.about |= heard.told
        answer.stamps.close("transfer", answer.clock.now())
        timing = f": {SERVER_TIMING}: {server_timing(answer.stamps.parts())}\n\n".encode()
        await send({"type": "http.response.body", "body": timing, "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
