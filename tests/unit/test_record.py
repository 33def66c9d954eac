"""A measured request survives being written as a line, and a line that is no row is refused."""

import pytest

from tailrace.wire.record import BadRow, Part, Row


def test_a_row_reads_back_as_it_was_written() -> None:
    row = Row(
        wall_ms=12.5,
        parts={
            "net": Part(0.5, "estimated", low=0.4, high=0.7, note="to the edge"),
            "infer": Part(12.1, "declared"),
            "other": Part(-0.1, "residual"),
        },
        status=200,
        at_s=3.25,
        unix_s=1.0,
        prompt="ab12",
        detail={"input_tokens": 7},
    )
    assert Row.from_line(row.to_line()) == row
    assert abs(row.miss_ms()) < 1e-9


def test_a_timeout_is_a_lower_bound() -> None:
    assert Row(1500.0, {}, outcome="timeout").censored
    assert not Row(1500.0, {}).censored


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"wall_ms": "1", "parts": {}}',
        '{"wall_ms": true, "parts": {}}',
        '{"wall_ms": 1, "parts": {"net": 1}}',
        '{"wall_ms": 1, "parts": {"net": {"ms": 1, "source": "guessed"}}}',
        '{"wall_ms": 1, "parts": {"net": {"source": "measured"}}}',
        '{"wall_ms": 1, "parts": {}, "outcome": "fine"}',
    ],
)
def test_what_is_no_row_is_refused(line: str) -> None:
    with pytest.raises(BadRow):
        Row.from_line(line)
