"""What counts as a token, in which channel, and when: dialect by dialect."""

import json
from typing import Any

import pytest

from tailrace.latency.exchange import Chunk
from tailrace.latency.targets.chat_answer import ChatAnswer, read_stream, read_whole
from tailrace.wire.sse import EVENT_BYTES_MAX

ROLE = {"role": "assistant", "content": ""}


def stream(*deltas: Any, finish: str | None = "stop", done: bool = True) -> list[Chunk]:
    """One frame per chunk, the moment of each its number times ten."""
    frames = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish is not None:
        frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in frames]
    if done:
        lines.append("data: [DONE]\n\n")
    return [Chunk(index * 10, line.encode()) for index, line in enumerate(lines)]


def moments(answer: ChatAnswer) -> tuple[int | None, int | None, int | None]:
    marks = answer.marks
    return marks.first_token, marks.first_visible, marks.last_token


def test_a_role_an_empty_delta_and_a_comment_are_no_tokens() -> None:
    chunks = [
        Chunk(0, b": PROCESSING\n\n"),
        *stream(ROLE, {}, {"content": None}, {"content": "hi"}),
    ]
    assert moments(read_stream(chunks)) == (30, 30, 30)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_are_the_first_token_and_not_the_first_visible_one(name: str) -> None:
    answer = read_stream(
        stream(ROLE, {name: "hm"}, {name: "so"}, {"content": "42"}, {"content": "!"})
    )
    assert moments(answer) == (10, 30, 40)


def test_thoughts_in_pieces_of_content() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    answer = read_stream(
        stream({"content": [thinking]}, {"content": [{"type": "text", "text": "42"}]})
    )
    assert moments(answer) == (0, 10, 10)


def test_thoughts_between_tags_that_fall_apart() -> None:
    words = ["<th", "ink>", "hm", "</thi", "nk>", "\n\n", "42", "!"]
    answer = read_stream(stream(*({"content": word} for word in words)))
    assert moments(answer) == (0, 60, 70)
    never = read_stream(stream(*({"content": word} for word in words[:4])))
    assert moments(never) == (0, None, 30)


def test_a_tag_and_the_answer_in_one_piece_are_visible() -> None:
    answer = read_stream(stream({"content": "<think>hm</think>42"}))
    assert moments(answer) == (0, 0, 0)


def test_an_empty_thought_does_not_hide_the_answer() -> None:
    answer = read_stream(
        stream({"reasoning": "", "content": "42"}, {"reasoning": None, "content": "!"})
    )
    assert moments(answer) == (0, 0, 10)


def test_a_tool_call_and_a_refusal_are_seen() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": ""}}]}
    assert moments(read_stream(stream(ROLE, call))) == (10, 10, 10)
    assert moments(read_stream(stream(ROLE, {"refusal": "no"}))) == (10, 10, 10)


def test_the_last_frames_tell_the_counts_and_the_times() -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 3}, "timings": {"prompt_ms": 5.0}}
    chunks = [
        *stream({"content": "a"}, done=False),
        Chunk(90, f"data: {json.dumps(usage)}\n\n".encode()),
    ]
    answer = read_stream(chunks)
    assert answer.usage == {"completion_tokens": 3}
    assert answer.rest["timings"] == {"prompt_ms": 5.0}


def test_counts_inside_groqs_own_frame() -> None:
    frame = {"choices": [], "x_groq": {"id": "1", "usage": {"queue_time": 0.01}}}
    answer = read_stream(
        [*stream({"content": "a"}), Chunk(90, f"data: {json.dumps(frame)}\n\n".encode())]
    )
    assert answer.usage == {"queue_time": 0.01}


@pytest.mark.parametrize(
    ("chunks", "problem"),
    [
        (stream(ROLE), "without a token"),
        ([Chunk(0, b": ping\n\n: ping\n\n")], "without a token"),
        ([], "without a token"),
        ([Chunk(0, b"data: <html>\n\n")], "not JSON"),
        ([Chunk(0, b"data: [1]\n\n")], "no object"),
        ([Chunk(0, b'data: {"error": {"message": "overloaded"}}\n\n')], "overloaded"),
        ([Chunk(0, b'data: {"error": "overloaded"}\n\n')], "overloaded"),
        ([Chunk(0, b'data: {"choices": [null, 3, {"delta": 7}]}\n\n')], "without a token"),
        ([Chunk(0, b'data: {"choices": {"delta": 7}}\n\n')], "without a token"),
    ],
)
def test_a_stream_that_is_none_says_so(chunks: list[Chunk], problem: str) -> None:
    assert problem in (read_stream(chunks).problem or "")


def test_an_error_after_tokens_is_a_problem_too() -> None:
    chunks = [
        *stream({"content": "a"}, finish=None, done=False),
        Chunk(90, b'data: {"error": {}}\n\n'),
    ]
    chunks.append(Chunk(95, b'data: {"error": {"message": "gone"}}\n\n'))
    assert "gone" in (read_stream(chunks).problem or "")


def test_the_end_is_known_by_the_mark_or_by_the_reason() -> None:
    cut = read_stream(stream({"content": "a"}, finish=None, done=False))
    assert (cut.done, cut.finished) == (False, None)
    assert read_stream(stream({"content": "a"}, finish="length", done=False)).finished == "length"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"error": {"message": "no"}}', b"null"]
)
def test_a_whole_answer_that_is_none_says_so(body: bytes) -> None:
    assert read_whole(body).problem


def test_an_event_without_an_end_is_a_problem_and_not_memory() -> None:
    whole = Chunk(1, b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n')
    answer = read_stream([whole, Chunk(2, b"data: " + b"x" * (EVENT_BYTES_MAX + 1))])
    assert answer.problem is not None
    assert "larger than" in answer.problem
    assert answer.marks.first_token == 1
