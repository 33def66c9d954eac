"""The OpenAI dialect's chat completions: /v1/chat/completions, whole or as a stream.

The request is checked where a mistake is cheap to find and passed on as it is, but for the model's name;
the answer comes back as it came.
"""

from typing import Any

import orjson

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.dialects.openai import OpenAI
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import model_named
from tailrace.serve.problems import Answer
from tailrace.serve.relay import StreamAnswer
from tailrace.serve.schemas import OPENAI_CHAT
from tailrace.serve.usage import usage_of
from tailrace.wire.headers import X_FALLBACK
from tailrace.wire.tracing import REQUEST_STREAM

STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class OpenAIChat(OpenAI):
    """Chat completions as OpenAI offers them; errors as in the rest of the dialect."""

    def add_routes(self) -> None:
        """With and without /v1."""
        for prefix in ("/v1", ""):
            self.post(
                f"{prefix}/chat/completions", self._complete, OPENAI_CHAT, summary="Complete a chat"
            )

    async def _complete(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.chat(model_named(body))
            self._check(body)
            stream = body.get("stream") or False
            if not isinstance(stream, bool):
                raise InputError("`stream` must be true or false.")
            terms = self.terms(exchange, 1)
        made = await model.complete(exchange, body, terms, stream=stream)
        account = exchange.account
        if account.traced:
            account.about |= {REQUEST_STREAM: stream, **usage_of(made.body)}
        marked = {X_FALLBACK: made.fallback} if made.fallback else {}
        if made.stream is None:
            return Answer(200, made.body, {"Content-Type": "application/json", **marked})
        return StreamAnswer(
            200,
            b"",
            {**STREAM_HEADERS, **marked},
            stream=made.stream,
            stamps=exchange.stamps,
            clock=exchange.clock,
            words=self._words,
            account=account,
        )

    def _check(self, body: dict[str, Any]) -> None:
        """Refuse what no upstream could use; what else there is in the body is the upstream's affair."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise InputError("`messages` must be a list.")
        self.check_count(messages, "messages")
        for i, message in enumerate(messages):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise InputError(f"`messages.{i}` must be an object with a `role`.")
            content = message.get("content")
            if isinstance(content, str):
                self.check_text(content, f"messages.{i}.content", empty=True)
            elif content is not None and not isinstance(content, list):
                raise InputError(f"`messages.{i}.content` must be a string or a list of parts.")
        try:
            orjson.dumps(body)
        except orjson.JSONEncodeError as fault:
            raise InputError(f"The body cannot be passed on: {fault}.") from fault

    @staticmethod
    def _words(error: TailraceError) -> dict[str, Any]:
        about = {"message": str(error), "type": "server_error", "param": None, "code": error.code}
        return {"error": about}
