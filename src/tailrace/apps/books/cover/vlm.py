"""The question to a model that sees, and its answer as lines: an OpenAI-compatible image message.

Knows the shape of a chat completion; nothing of lanes or of the catalogue, which judges the answer.
"""

import base64
from collections import deque
from typing import Any

import orjson

from tailrace.apps.books.cover.match import ReadLine
from tailrace.apps.books.cover.settings import VlmSettings
from tailrace.apps.books.turn.generator import Tokens, Truncated
from tailrace.models.upstream_errors import UpstreamFailed
from tailrace.wire.reasoning import reasoning_tokens, switch

ASK = (
    "This is a photograph of a book's cover. Answer with JSON only: title, author, publisher, exactly as "
    "they are printed, in the language and script of the cover. Use an empty string for what is not there. "
    "Do not guess a book that you cannot read."
)
FIELDS = ("title", "author", "publisher")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string", "maxLength": 200} for name in FIELDS},
    "required": list(FIELDS),
    "additionalProperties": False,
}
TOKENS_MAX = 300
"""Tokens of the answer."""
TEXT_CHARS_MAX = 200
"""Characters of one field of it that are looked at."""
MINUTE_S = 60.0


class PerMinute:
    """At most `most` in any minute, by the moments of the last ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: deque[float] = deque(maxlen=max(1, most))

    def take(self, now: float) -> bool:
        """Whether one more may be made now; then it counts."""
        while self._taken and now - self._taken[0] >= MINUTE_S:
            self._taken.popleft()
        if len(self._taken) >= self._most:
            return False
        self._taken.append(now)
        return True


def asking(jpeg: bytes, settings: VlmSettings) -> dict[str, Any]:
    """The body of the question."""
    picture = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    content = [
        {"type": "text", "text": ASK},
        {"type": "image_url", "image_url": {"url": picture}},
    ]
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": TOKENS_MAX,
        **switch(settings.provider, settings.reasoning),
    }
    if settings.structured:
        shape = {"name": "cover", "strict": True, "schema": SCHEMA}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return body


def cost(answer: bytes) -> Tokens:
    """What the call cost, as the model tells it."""
    usage = orjson.loads(answer).get("usage")
    if not isinstance(usage, dict):
        return Tokens(calls=1, counted=True)
    made = Tokens(calls=1, reasoning=reasoning_tokens(usage) or 0)
    if isinstance(usage.get("prompt_tokens"), int):
        made.prompt = usage["prompt_tokens"]
    if isinstance(usage.get("completion_tokens"), int):
        made.completion = usage["completion_tokens"]
    return made


def said(answer: bytes) -> tuple[ReadLine, ...]:
    """What the model read: the title as the large line, the rest smaller.

    Raises:
        Truncated: it was cut off.
        UpstreamFailed: its answer is not of the shape that was asked for.

    """
    try:
        choice = orjson.loads(answer)["choices"][0]
        if choice.get("finish_reason") == "length":
            raise Truncated
        text = choice["message"]["content"]
        made = orjson.loads(text.strip().removeprefix("```json").strip("`").strip())
        fields = [made.get(name) or "" for name in FIELDS]
        if not all(isinstance(value, str) for value in fields):
            raise TypeError
    except (KeyError, IndexError, TypeError, AttributeError, orjson.JSONDecodeError):
        raise UpstreamFailed("The model's answer tells no title and no author.") from None
    sizes = (1.0, 0.5, 0.5)
    return tuple(
        ReadLine(" ".join(value.split())[:TEXT_CHARS_MAX], size)
        for value, size in zip(fields, sizes, strict=True)
        if value.strip()
    )
