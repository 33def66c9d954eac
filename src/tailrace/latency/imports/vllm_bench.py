"""vllm bench serve: the JSON of --save-result --save-detailed; seconds, one list for each figure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tailrace.latency.imports.shapes import BadImport, Imported, number, row_of, sequence
from tailrace.wire.record import Row

DATE = "%Y%m%d-%H%M%S"
NEEDS = ("ttfts", "itls")


def read_vllm(body: Mapping[str, Any]) -> list[Imported]:
    """The one run of the file."""
    if not all(sequence(body.get(name)) for name in NEEDS):
        raise BadImport("this vllm file holds no single requests; write it with --save-detailed")
    began = _began(body.get("date"))
    starts = [number(value) for value in sequence(body.get("start_times"))]
    known = [start for start in starts if start is not None]
    zero = min(known, default=0.0)
    rows = []
    for i, ttft in enumerate(sequence(body["ttfts"])):
        at_s = (starts[i] or zero) - zero if i < len(starts) else 0.0
        rows.append(_row(body, i, number(ttft) or 0.0, at_s, began))
    rate = number(body.get("request_rate"))
    return [
        Imported(
            "vllm",
            "vllm-bench",
            tuple(rows),
            began,
            protocol=str(body.get("backend") or body.get("endpoint_type") or ""),
            model=body.get("model_id"),
            kind="open-poisson" if rate else "throughput",
            offered_per_s=rate,
            duration_s=number(body.get("duration")) or 0.0,
            notes=(
                *(() if known else ("no start times: the order of the rows is all that is known",)),
                "no intended starts: what the sender waited is not in it",
            ),
        )
    ]


def _row(body: Mapping[str, Any], i: int, ttft: float, at_s: float, began: datetime) -> Row:
    gaps = [gap for gap in map(number, sequence(_at(body, "itls", i))) if gap is not None]
    error = _at(body, "errors", i) or None
    generate = sum(gaps) * 1000
    detail = {
        "input_tokens": _at(body, "input_lens", i),
        "output_tokens": _at(body, "output_lens", i),
        "error": error,
    }
    return row_of(
        ttft * 1000 + generate,
        {"generate": generate} if gaps else {},
        at_s=at_s,
        unix_s=began.timestamp() + at_s,
        outcome="error" if error else "ok",
        detail=detail,
    )


def _at(body: Mapping[str, Any], name: str, i: int) -> Any:
    values = sequence(body.get(name))
    return values[i] if i < len(values) else None


def _began(date: Any) -> datetime:
    try:
        return datetime.strptime(str(date), DATE).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
