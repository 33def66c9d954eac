"""guidellm: `benchmarks.json`, with the moments of every request as Unix time in seconds."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tailrace.latency.imports.shapes import (
    BadImport,
    Imported,
    mapping,
    number,
    row_of,
    sequence,
)
from tailrace.wire.record import Outcome, Row

KINDS: dict[str, Outcome] = {"successful": "ok", "incomplete": "truncated", "errored": "error"}


def read_guidellm(body: Mapping[str, Any]) -> list[Imported]:
    """One run for each benchmark of the file."""
    found = []
    for number_, benchmark in enumerate(sequence(body.get("benchmarks")), 1):
        rows = _rows(mapping(mapping(benchmark).get("requests")))
        if not rows:
            raise BadImport(
                f"benchmark {number_} of this guidellm file holds no requests; "
                "write it with their samples kept"
            )
        began = min(row.unix_s or 0.0 for row in rows)
        config = mapping(mapping(benchmark).get("config"))
        strategy = mapping(config.get("strategy")).get("type_")
        late = any("sched" in row.parts for row in rows)
        found.append(
            Imported(
                "guidellm",
                f"guidellm-{number_}",
                tuple(_from(row, began) for row in rows),
                datetime.fromtimestamp(began, UTC),
                protocol="openai-chat",
                kind=str(strategy or "imported"),
                duration_s=_span(rows),
                notes=() if late else ("no intended starts: what the sender waited is not in it",),
            )
        )
    return found


def _rows(requests: Mapping[str, Any]) -> list[Row]:
    return [
        row
        for kind, outcome in KINDS.items()
        for request in sequence(requests.get(kind))
        for row in _row(mapping(request), outcome)
    ]


def _row(request: Mapping[str, Any], outcome: Outcome) -> Iterator[Row]:
    timings = mapping(mapping(request.get("info")).get("timings"))
    at = {name: number(value) for name, value in timings.items()}
    begun = at.get("request_start") or at.get("resolve_start")
    ended = at.get("request_end") or at.get("resolve_end")
    if begun is None or ended is None:
        return
    meant = at.get("targeted_start") or begun
    known = {"sched": (begun - meant) * 1000} if at.get("targeted_start") else {}
    first, last = at.get("first_token_iteration"), at.get("last_token_iteration")
    if first is not None and last is not None:
        visible = at.get("first_output_token_iteration") or first
        if visible > first:
            known["think"] = (visible - first) * 1000
        known["generate"] = (last - visible) * 1000
        known["transfer"] = (ended - last) * 1000
    detail = {
        "input_tokens": request.get("prompt_tokens"),
        "output_tokens": request.get("output_tokens"),
        "error": mapping(request.get("info")).get("error"),
    }
    yield row_of(
        (ended - meant) * 1000, known, at_s=0.0, unix_s=meant, outcome=outcome, detail=detail
    )


def _from(row: Row, began: float) -> Row:
    return Row(
        row.wall_ms,
        row.parts,
        row.status,
        row.outcome,
        (row.unix_s or began) - began,
        row.unix_s,
        row.phase,
        row.prompt,
        row.detail,
    )


def _span(rows: list[Row]) -> float:
    starts = [row.unix_s or 0.0 for row in rows]
    return max(starts) - min(starts)
