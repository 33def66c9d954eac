"""What a chat answered: its channels with the moments of their tokens, its counts, and its last words.

Reads OpenAI-compatible streams and whole answers, with the dialects of reasoning that are about. What is a
token: text in any channel. A comment, a role, an empty delta is none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.latency.exchange import Chunk
from tailrace.latency.partition import Marks
from tailrace.latency.sse import frames
from tailrace.wire.sse import BadEventStream, Event

DONE = "[DONE]"
OPENS, CLOSES = "<think>", "</think>"
"""What models write round their thoughts where the server does not take them apart."""
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")


@dataclass(slots=True)
class Said:
    """One piece of text in one channel."""

    at_ns: int
    text: str
    visible: bool


@dataclass(slots=True)
class ChatAnswer:
    """A chat's answer, streamed or whole."""

    said: list[Said] = field(default_factory=list)
    frames: int = 0
    """Frames with data, those without a token too."""
    rest: dict[str, Any] = field(default_factory=dict)
    """Everything besides the choices: usage, timings, model; of a stream the last of each."""
    finished: str | None = None
    """The finish reason."""
    done: bool = False
    """Whether the stream said that it was over."""
    truncated: bool = False
    """Whether it ended without a mark, a reason or an error."""
    problem: str | None = None

    @property
    def marks(self) -> Marks:
        """First token, first visible token, last token."""
        if not self.said:
            return Marks()
        visible = next((piece.at_ns for piece in self.said if piece.visible), None)
        return Marks(self.said[0].at_ns, visible, self.said[-1].at_ns)

    @property
    def usage(self) -> Mapping[str, Any]:
        """The counts, empty where there are none."""
        usage = self.rest.get("usage")
        return usage if isinstance(usage, Mapping) else {}


def read_stream(chunks: Iterable[Chunk]) -> ChatAnswer:
    """A streamed answer; what is wrong with it is its `problem`."""
    answer = ChatAnswer()
    try:
        for frame in frames(chunks):
            _frame(answer, frame)
    except BadEventStream as bad:
        answer.problem = answer.problem or str(bad)
    _part_thoughts(answer)
    answer.truncated = not answer.done and answer.finished is None and answer.problem is None
    if answer.problem is None and not answer.said:
        answer.problem = "a stream without a token"
    return answer


def _frame(answer: ChatAnswer, frame: Event) -> None:
    answer.frames += 1
    if frame.data.strip() == DONE:
        answer.done = True
        return
    try:
        body = orjson.loads(frame.data)
    except orjson.JSONDecodeError:
        answer.problem = answer.problem or "a frame of the stream is not JSON"
        return
    _take(answer, body, frame.at_ns, "delta")


def read_whole(body: bytes) -> ChatAnswer:
    """An answer that came in one piece; it has no moments."""
    answer = ChatAnswer()
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer.problem = "the answer is not JSON"
        return answer
    _take(answer, parsed, 0, "message")
    _part_thoughts(answer)
    answer.done = True
    if answer.problem is None and "choices" not in _mapping(parsed):
        answer.problem = "no choices in the answer: this is no chat"
    return answer


def _take(answer: ChatAnswer, body: Any, at_ns: int, place: str) -> None:
    if not isinstance(body, Mapping):
        answer.problem = answer.problem or "a frame of the answer is no object"
        return
    if body.get("error"):
        said = _mapping(body["error"]).get("message", body["error"])
        answer.problem = f"the server broke off: {str(said)[:200]}"
        return
    answer.rest.update({k: v for k, v in body.items() if k != "choices" and v is not None})
    if "usage" not in answer.rest and (usage := _mapping(body.get("x_groq")).get("usage")):
        answer.rest["usage"] = usage
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        one = _mapping(choice)
        answer.finished = one.get("finish_reason") or answer.finished
        answer.said.extend(
            Said(at_ns, text, visible) for text, visible in _texts(_mapping(one.get(place))) if text
        )


def _texts(delta: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The texts of one delta or message, thoughts first, each with whether a person sees it."""
    thought = next((delta[name] for name in REASONING_FIELDS if delta.get(name)), None)
    if isinstance(thought, str):
        yield thought, False
    content = delta.get("content")
    if isinstance(content, str):
        yield content, True
    for piece in content if isinstance(content, list) else ():  # Mistral's thinking chunks
        part = _mapping(piece)
        if part.get("type") == "thinking":
            thinking = part.get("thinking")
            inner = thinking if isinstance(thinking, list) else ()
            yield "".join(str(_mapping(t).get("text", "")) for t in inner), False
        elif isinstance(part.get("text"), str):
            yield part["text"], True
    if isinstance(delta.get("refusal"), str):
        yield delta["refusal"], True
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = _mapping(_mapping(call).get("function"))
        yield f"{function.get('name') or ''}{function.get('arguments') or ''}", True


def _part_thoughts(answer: ChatAnswer) -> None:
    """Thoughts that stand between tags in the visible text are thoughts."""
    visible = [piece for piece in answer.said if piece.visible]
    text = "".join(piece.text for piece in visible)
    if not text.lstrip().startswith(OPENS):
        return
    end = text.find(CLOSES)
    end = len(text) if end < 0 else end + len(CLOSES)
    at = 0
    for piece in visible:
        at += len(piece.text)
        beyond = piece.text[len(piece.text) - max(0, at - end) :]
        piece.visible = at > end and bool(beyond.strip())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
