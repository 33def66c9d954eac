"""What a chat's answer says of itself, for its span: tokens and why it ended. Never what it says.

Read only where a trace is kept; an answer of any other shape tells nothing and breaks nothing.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from tailrace.wire.reasoning import reasoning_tokens
from tailrace.wire.sse import BadEventStream, EventReader
from tailrace.wire.tracing import (
    FINISH_REASONS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Value,
)

COUNTS = (("prompt_tokens", INPUT_TOKENS), ("completion_tokens", OUTPUT_TOKENS))


def usage_of(answer: bytes | str) -> dict[str, Value]:
    """Attributes out of a whole answer, or of one event of a stream."""
    try:
        body = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(body, Mapping):
        return {}
    told: dict[str, Value] = {}
    if isinstance(usage := body.get("usage"), Mapping):
        told |= {name: usage[key] for key, name in COUNTS if isinstance(usage.get(key), int)}
        if (thoughts := reasoning_tokens(usage)) is not None:
            told[REASONING_TOKENS] = thoughts
    if reasons := _reasons(body.get("choices")):
        told[FINISH_REASONS] = reasons
    return told


def _reasons(choices: Any) -> list[str]:
    given = (
        [c.get("finish_reason") for c in choices if isinstance(c, Mapping)]
        if isinstance(choices, list)
        else []
    )
    return [reason for reason in given if isinstance(reason, str)]


class Heard:
    """The same of a stream, piece by piece."""

    def __init__(self) -> None:
        self.told: dict[str, Value] = {}
        self._reader: EventReader | None = EventReader()

    def piece(self, piece: bytes) -> None:
        """Take in what is passed on."""
        if self._reader is None:
            return
        try:
            events = list(self._reader.feed(piece))
        except BadEventStream:
            self._reader = None
            return
        for event in events:
            self.told |= usage_of(event.data)
