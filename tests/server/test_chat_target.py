"""Chats as rows: tokens, thoughts, switches, counts, and streams that end badly."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from scripted import CLOSE, Answer, reply, scripted
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.chat import STILL_THOUGHT, Chat
from tailrace.wire.record import IDENTITY_MS, Row

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = "[DONE]"
STEP_S = 0.02


def frame(data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    line = f"data: {text}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(line), line)


def delta(**fields: Any) -> bytes:
    return frame({"choices": [{"index": 0, "delta": fields}]})


def usage(out: int, thought: int = 0, **more: Any) -> bytes:
    details = {"reasoning_tokens": thought}
    counts = {"prompt_tokens": 5, "completion_tokens": out, "completion_tokens_details": details}
    return frame({"choices": [], "usage": counts, **more})


def row_of(answer: Answer, **options: Any) -> tuple[Row, Any]:
    async def main() -> tuple[Row, Any]:
        async with scripted(answer) as server, Pool() as pool:
            target = Chat(server.url + "/v1", ["안녕"], "m", **options)
            row = await measure(pool, target, 0, timeout_s=5)
            return row, json.loads(server.requests[0].partition(b"\r\n\r\n")[2])

    row, body = asyncio.run(main())
    assert abs(row.miss_ms()) <= IDENTITY_MS
    return row, body


def spaced(*pieces: bytes) -> list[bytes | float]:
    steps: list[bytes | float] = [HEAD]
    for piece in pieces:
        steps += [STEP_S, piece]
    return steps


def test_a_stream_with_thoughts_is_divided_at_its_tokens() -> None:
    thoughts = [delta(role="assistant", content=""), delta(reasoning="hm"), delta(reasoning="so")]
    words = [delta(content=word) for word in ("4", "2", "!")]
    row, body = row_of([*spaced(*thoughts, *words, usage(5, 2)), frame(DONE), END])
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert row.outcome == "ok"
    assert row.parts["think"].ms > 1.5 * STEP_S * 1000
    assert row.parts["generate"].ms > 1.5 * STEP_S * 1000
    assert row.parts["other"].ms > 1.5 * STEP_S * 1000  # headers and a role came at once: no token
    assert row.detail["output_tokens"] == 5
    assert row.detail["reasoning_tokens"] == 2
    assert row.detail["reasoning_chunks"] == 2
    assert row.detail["pieces"] == 5


def test_several_tokens_in_a_piece_are_counted_by_token() -> None:
    words = [delta(content="four tokens a piece ") for _ in range(5)]
    row, _ = row_of([*spaced(*words, usage(20)), frame(DONE), END])
    assert row.detail["inter_piece_ms"] / row.detail["inter_token_ms"] == pytest.approx(4)


def test_hidden_thoughts_are_split_off_the_wait_by_tokens() -> None:
    words = [delta(content="word ") for _ in range(12)]
    steps: Sequence[Any] = [HEAD, 0.3, *spaced(*words, usage(20, 8))[1:], frame(DONE), END]
    row, _ = row_of(steps, effort="low")
    think = row.parts["think"]
    assert think.source == "estimated"
    assert think.low is not None
    assert think.high is not None
    assert 0 < think.low <= think.ms <= think.high <= 330
    assert row.detail["reasoning_asked"] == "low"
    assert "reasoning_flag" not in row.detail


@pytest.mark.parametrize("shown", [True, False])
def test_asked_off_and_still_thought_is_flagged(shown: bool) -> None:
    thoughts = [delta(reasoning_content="hm")] if shown else []
    row, body = row_of(
        [HEAD, *thoughts, delta(content="42"), usage(9, 0 if shown else 7), END], effort="off"
    )
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert row.detail["reasoning_flag"] == STILL_THOUGHT


def test_declared_times_of_a_stream_stand_in_its_last_frame() -> None:
    metrics = {"queue_time_ms": 8.0, "time_to_first_token_ms": 9.0, "generation_time_ms": 900.0}
    last = usage(2, metrics=metrics)
    row, _ = row_of(
        [HEAD, 0.04, delta(content="4"), 0.02, delta(content="2"), last, frame(DONE), END]
    )
    assert (row.parts["queue"].ms, row.parts["prefill"].ms) == (8.0, 9.0)
    assert row.parts["generate"].source == "measured"
    assert row.parts["generate"].ms < 900
    assert row.detail["declared"]["vllm"]["metrics.generation_time_ms"] == 900.0


def test_a_whole_answer_has_declared_parts_and_split_thoughts() -> None:
    answer = {
        "model": "m-1",
        "system_fingerprint": "fp",
        "choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 40,
            "completion_tokens_details": {"reasoning_tokens": 30},
            "queue_time": 0.001,
            "prompt_time": 0.002,
            "completion_time": 0.04,
        },
    }
    row, body = row_of([0.06, reply(json.dumps(answer).encode())], stream=False)
    assert "stream" not in body
    assert row.parts["think"].ms == pytest.approx(30)
    assert row.parts["generate"].ms == pytest.approx(10)
    assert row.parts["queue"].source == "declared"
    assert row.parts["think"].source == "estimated"
    assert row.detail["model"] == "m-1"
    assert row.detail["fingerprint"] == "fp"


def test_a_server_that_does_not_stream_is_read_whole_and_marked() -> None:
    answer = {"choices": [{"message": {"content": "42"}, "finish_reason": "stop"}]}
    row, _ = row_of([reply(json.dumps(answer).encode())])
    assert row.outcome == "ok"
    assert row.detail["streamed"] is False
    assert "generate" not in row.parts


@pytest.mark.parametrize(
    ("answer", "outcome", "said"),
    [
        ([HEAD, delta(content="a"), CLOSE], "truncated", "broke off"),
        ([HEAD, delta(content="a"), END], "truncated", ""),
        ([HEAD, delta(role="assistant"), frame(DONE), END], "error", "without a token"),
        ([HEAD, b"9\r\n: ping\n\n\n\r\n", END], "truncated", "without a token"),
        ([HEAD, frame("<oops>"), frame(DONE), END], "error", "not JSON"),
        (
            [HEAD, delta(content="a"), frame({"error": {"message": "gpu lost"}}), END],
            "error",
            "gpu lost",
        ),
        ([reply(b'{"error": {"message": "no such model"}}', 404)], "error", "no such model"),
        ([reply(b"slow down", 429)], "refused", "slow down"),
    ],
)
def test_a_bad_end_is_a_marked_row(answer: Answer, outcome: str, said: str) -> None:
    row, _ = row_of(answer)
    assert row.outcome == outcome
    assert said in row.detail.get("error", "")


@pytest.mark.parametrize("end", [CLOSE, 6.0])
def test_a_stream_that_is_cut_off_has_its_prefill_and_its_generation(end: Any) -> None:
    """Declared inference before a stream is prefill, however the stream ends."""
    head = HEAD.replace(
        b"\r\n\r\n", b"\r\nserver-timing: admit;dur=0, infer;dur=20, total;dur=21\r\n\r\n"
    )
    row, _ = row_of([0.05, head, delta(content="a"), STEP_S, delta(content="b"), STEP_S, end])
    assert row.censored
    assert "infer" not in row.parts
    assert row.parts["prefill"].source == "declared"
    assert row.parts["generate"].note == "cut off"
    assert row.parts["generate"].ms >= 2 * STEP_S * 1000 * 0.9
    assert not {"transfer", "client"} & row.parts.keys()
