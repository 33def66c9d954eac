"""aiperf: `profile_export.jsonl`, one record a line; moments in nanoseconds, figures with their unit."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tailrace.latency.imports.shapes import BadImport, Imported, mapping, number, row_of
from tailrace.wire.record import Row

UNIT_MS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6, "sec": 1000.0}
PARTS = {
    "http_req_blocked": "pool",
    "http_req_dns_lookup": "dns",
    "http_req_connecting": "connect",
    "http_req_sending": "send",
}
"""aiperf folds TLS into connecting."""


def read_aiperf(records: Iterable[Mapping[str, Any]]) -> list[Imported]:
    """The one run of the file; warm-up records keep their phase."""
    rows = [row for record in records if (row := _row(record)) is not None]
    if not rows:
        raise BadImport("no record of this aiperf file tells how long its request took")
    zero = min(row.unix_s or 0.0 for row in rows)
    shifted = tuple(
        Row(
            r.wall_ms, r.parts, r.status, r.outcome, (r.unix_s or zero) - zero, r.unix_s, r.phase,
            detail=r.detail,
        )
        for r in rows
    )  # fmt: skip
    return [
        Imported(
            "aiperf",
            "aiperf",
            shifted,
            datetime.fromtimestamp(zero, UTC),
            protocol="openai-chat",
            duration_s=max(row.at_s for row in shifted),
            notes=("connect holds TLS", "no intended starts: what the sender waited is not in it"),
        )
    ]


def _row(record: Mapping[str, Any]) -> Row | None:
    metadata, metrics = mapping(record.get("metadata")), mapping(record.get("metrics"))
    begun, ended = number(metadata.get("request_start_ns")), number(metadata.get("request_end_ns"))
    wall = _ms(metrics.get("request_latency"))
    error = mapping(record.get("error"))
    if begun is None or (wall is None and ended is None):
        return None
    if wall is None:
        wall = ((ended or begun) - begun) / 1e6
    known = {
        ours: ms for theirs, ours in PARTS.items() if (ms := _ms(metrics.get(theirs))) is not None
    }
    first = _ms(metrics.get("time_to_first_token"))
    visible = _ms(metrics.get("time_to_first_output_token"))
    if first is not None:
        spoken = visible if visible is not None and visible > first else first
        if spoken > first:
            known["think"] = spoken - first
        known["generate"] = wall - spoken
    phase = str(metadata.get("benchmark_phase") or "profiling")
    detail = {
        "input_tokens": _value(metrics.get("input_sequence_length")),
        "output_tokens": _value(metrics.get("output_sequence_length")),
        "reasoning_tokens": _value(metrics.get("reasoning_token_count")),
        "error": error.get("message"),
    }
    code = error.get("code")
    return row_of(
        wall,
        known,
        at_s=0.0,
        unix_s=begun / 1e9,
        status=code if isinstance(code, int) else None if error else 200,
        outcome="truncated" if metadata.get("was_cancelled") else "error" if error else "ok",
        phase="steady" if phase == "profiling" else "warm-up",
        detail=detail,
    )


def _ms(metric: Any) -> float | None:
    """A figure in milliseconds: a plain number is in milliseconds already."""
    if isinstance(metric, Mapping):
        scale = UNIT_MS.get(str(metric.get("unit")))
        value = number(metric.get("value"))
        return None if value is None or scale is None else value * scale
    return number(metric)


def _value(metric: Any) -> int | None:
    value = number(metric.get("value")) if isinstance(metric, Mapping) else number(metric)
    return None if value is None else int(value)
