"""A request becomes a row: whatever the server does, the parts add up and nothing secret is in it."""

import asyncio
import time

import pytest

from scripted import CLOSE, RESET, Answer, reply, scripted
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.plain import PlainUrl
from tailrace.wire.record import IDENTITY_MS, Row

KEY = "sk-very-secret-0123456789"


def rows(*answers: Answer, times: int = 1, timeout_s: float = 5.0) -> list[Row]:
    async def main() -> list[Row]:
        async with scripted(*answers) as server, Pool() as pool:
            target = PlainUrl(server.url, headers={"Authorization": f"Bearer {KEY}"})
            return [
                await measure(pool, target, index, timeout_s=timeout_s) for index in range(times)
            ]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ([reply(b"x")], "ok"),
        ([0.01, reply(b"x")], "ok"),
        ([reply(b"full", 429, reason="Too Many Requests")], "refused"),
        ([reply(b"full", 503)], "refused"),
        ([reply(b"broken", 500)], "error"),
        ([reply(b"no", 404)], "error"),
        ([CLOSE], "error"),
        ([RESET], "error"),
        ([b"nonsense\r\n\r\n"], "error"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhal", CLOSE], "truncated"),
        ([0.5], "timeout"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhal", 0.5], "timeout"),
    ],
)
def test_every_end_is_a_row_whose_parts_add_up(answer: Answer, outcome: str) -> None:
    for row in rows(answer, times=2, timeout_s=0.2):
        assert row.outcome == outcome
        assert abs(row.miss_ms()) <= IDENTITY_MS
        assert Row.from_line(row.to_line()) == row
        assert KEY.encode() not in row.to_line()


def test_a_timeout_is_the_time_waited_and_no_answer() -> None:
    [row] = rows([0.5], timeout_s=0.2)
    assert row.censored
    assert row.status is None
    assert row.wall_ms >= 200
    assert row.parts["other"].note == "no answer came"


def test_a_key_that_the_server_repeats_is_taken_out() -> None:
    [row] = rows([reply(f"Incorrect API key provided: {KEY}".encode(), 401)])
    assert row.detail["error"] == "Incorrect API key provided: [key]"


def test_nobody_there_is_a_row_that_says_so() -> None:
    async def main() -> Row:
        async with Pool() as pool:
            return await measure(pool, PlainUrl("http://127.0.0.1:1/"), 0)

    row = asyncio.run(main())
    assert row.outcome == "error"
    assert row.detail["failure"] == "unreachable"
    assert abs(row.miss_ms()) <= IDENTITY_MS


def test_a_step_of_the_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**9, 10**12, 10**6))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    monkeypatch.setattr(time, "time_ns", lambda: next(jumps) * 10**9)
    [row] = rows([0.02, reply(b"x")])
    assert 20 <= row.wall_ms < 5000
    assert abs(row.miss_ms()) <= IDENTITY_MS


def test_an_edge_in_between_is_said() -> None:
    [row] = rows([reply(b"x", headers=[("CF-Ray", "8a-ICN")])])
    assert row.detail["edge"] == "cf-ray"
    assert row.parts["net"].note == "to the edge"
