"""One call of the language model: a stream through its lane, bounded by the turn's clocks.

A second try is made only before the first piece and only within what remains of the turn. Knows the shape
of a chat completion stream; nothing of books.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.apps.books.turn.clocks import CallClocks, TurnClocks
from tailrace.core.errors import TailraceError
from tailrace.models.upstream_errors import UpstreamBusy, UpstreamFailed, UpstreamTimeout
from tailrace.serve.chat import ServedChat
from tailrace.serve.served import Terms
from tailrace.wire.reasoning import Asked, Provider, reasoning_tokens, switch, thought
from tailrace.wire.sse import BadEventStream, Event, EventReader

TRIES = 2
RETRY_S = 0.2
"""The pause before the second try where the upstream names none."""


class Truncated(TailraceError):
    """The language model's answer was cut off at its limit of tokens."""

    code = "llm-truncated"


@dataclass(slots=True)
class Tokens:
    """What a call, or a whole turn, has cost."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    counted: bool = False
    """Whether some of it is our own count of pieces: the stream ended before the model told."""
    thoughts: int = 0
    """Pieces in which the model was seen to think."""
    calls: int = 0
    """Requests made upstream, second tries included."""

    def add(self, other: "Tokens") -> None:
        """Take another call's on."""
        self.prompt += other.prompt
        self.completion += other.completion
        self.reasoning += other.reasoning
        self.thoughts += other.thoughts
        self.calls += other.calls
        self.counted |= other.counted


@dataclass(frozen=True, slots=True)
class Manner:
    """How the model is to write."""

    provider: Provider = "openai"
    reasoning: Asked = "off"
    temperature: float | None = None
    structured: bool = True
    """Whether the upstream takes a JSON schema; else the words of the question must do."""


@dataclass(slots=True)
class Writing:
    """One call: its text as it comes by `pieces`, and what it cost."""

    chat: ServedChat
    body: dict[str, Any]
    clocks: TurnClocks
    terms: Terms
    tokens: Tokens = field(default_factory=Tokens)
    finish: str = ""
    _told: bool = False

    async def pieces(self) -> AsyncGenerator[str]:
        """The visible text, piece by piece.

        Raises:
            Rejected: the lane is full.
            StageTimeout: a clock ran out.
            Truncated: at the end, where the model was cut off.
            TailraceError: what the upstream did instead of answering.

        """
        for attempt in range(1, TRIES + 1):
            call = self.clocks.call()
            try:
                async with aclosing(self._once(call)) as texts:
                    async for text in texts:
                        yield text
                break
            except (UpstreamFailed, UpstreamTimeout, UpstreamBusy) as error:
                pause_s = error.pause_s if isinstance(error, UpstreamBusy) else RETRY_S
                if call.begun or attempt == TRIES or pause_s >= self.clocks.left_s:
                    raise
                await asyncio.sleep(pause_s)
        if self.finish == "length":
            raise Truncated

    async def _once(self, call: CallClocks) -> AsyncGenerator[str]:
        self.tokens.calls += 1
        stream = await call.wait(self.chat.open(self.body, self.terms))
        reader = EventReader()
        try:
            while (piece := await call.wait(stream.read())) is not None:
                for event in _events(reader, piece):
                    if text := self._take(event, call):
                        yield text
            if not self.finish:
                raise UpstreamFailed("The upstream's stream ended without a finish.")
        finally:
            stream.give_up()
            self.tokens.counted |= not self._told

    def _take(self, event: Event, call: CallClocks) -> str:
        """The visible text of one event; usage, thoughts and the finish are noted."""
        if event.data == "[DONE]":
            return ""
        body = _object(event.data)
        if isinstance(body.get("usage"), dict):
            self._cost(body["usage"])
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        text = delta.get("content")
        visible = text if isinstance(text, str) else ""
        thoughts = thought(delta)
        if visible or thoughts:
            call.piece()
            self.tokens.thoughts += bool(thoughts)
            self.tokens.completion += not self._told
        return visible

    def _cost(self, usage: Mapping[str, Any]) -> None:
        """The model's own figures replace what was counted."""
        told = usage.get("completion_tokens")
        if isinstance(told, int):
            self._told = True
            self.tokens.completion = told
        if isinstance(usage.get("prompt_tokens"), int):
            self.tokens.prompt = usage["prompt_tokens"]
        self.tokens.reasoning = reasoning_tokens(usage) or 0


class Generator:
    """Asks one language model, always as a stream."""

    def __init__(self, chat: ServedChat, manner: Manner) -> None:
        self._chat = chat
        self._manner = manner

    def write(
        self,
        messages: Sequence[Mapping[str, str]],
        name: str,
        schema: Mapping[str, Any],
        tokens_max: int,
        clocks: TurnClocks,
        terms: Terms,
    ) -> Writing:
        """One call that answers in the shape of `schema`; nothing is asked before its pieces are."""
        manner = self._manner
        body: dict[str, Any] = {
            "messages": list(messages),
            "max_tokens": tokens_max,
            "stream": True,
            "stream_options": {"include_usage": True},
            **switch(manner.provider, manner.reasoning),
        }
        if manner.temperature is not None:
            body["temperature"] = manner.temperature
        if manner.structured:
            shape = {"name": name, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return Writing(self._chat, body, clocks, terms)


def _events(reader: EventReader, piece: bytes) -> list[Event]:
    try:
        return reader.feed(piece)
    except BadEventStream as error:
        raise UpstreamFailed(f"The upstream's stream cannot be read: {error}.") from None


def _object(text: str) -> dict[str, Any]:
    """One chunk; raises UpstreamFailed where it is none, or an error."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise UpstreamFailed("The upstream's stream holds something that is no chunk.")
    error = body.get("error")
    if error:
        said = error.get("message") if isinstance(error, dict) else error
        raise UpstreamFailed(f"The upstream broke the stream off: {str(said)[:200]}")
    return body
