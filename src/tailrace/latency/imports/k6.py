"""k6: the points of `--out json`; the figures of one request are points of one moment and equal tags.

`http_req_blocked` holds connecting and TLS, `http_req_duration` is sending + waiting + receiving.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tailrace.latency.imports.shapes import BadImport, Imported, mapping, number, row_of
from tailrace.wire.record import Outcome, Row

PREFIX = "http_req_"
TIMED_OUT = {"1050", "1211"}
"""k6's error codes of a request, or of a dial, that was not waited for."""
REFUSALS = {429, 503}
NEEDED = {"blocked", "sending", "waiting", "receiving"}


def read_k6(points: Iterable[Mapping[str, Any]]) -> list[Imported]:
    """The one run of the file."""
    rows: list[Row] = []
    dropped, target = 0.0, ""
    current: tuple[str, Mapping[str, Any]] | None = None
    figures: dict[str, float] = {}

    def close() -> None:
        if current is not None and figures.keys() >= NEEDED:
            rows.append(_row(*current, figures))

    for point in points:
        data, metric = mapping(point.get("data")), str(point.get("metric"))
        if point.get("type") != "Point":
            continue
        value, tags = number(data.get("value")), mapping(data.get("tags"))
        if metric == "dropped_iterations" and value:
            dropped += value
        if not metric.startswith(PREFIX) or value is None:
            continue
        name, key = metric.removeprefix(PREFIX), (str(data.get("time")), tags)
        target = target or str(tags.get("url") or tags.get("name") or "").partition("?")[0]
        if key != current or name in figures:
            close()
            current, figures = key, {}
        figures[name] = value
    close()
    if not rows:
        raise BadImport(
            "no whole HTTP request in this k6 file; write it with --out json (not --summary-export)"
        )
    zero = min(row.unix_s or 0.0 for row in rows)
    ordered = sorted(rows, key=lambda row: row.unix_s or 0.0)
    shifted = tuple(
        Row(
            r.wall_ms, r.parts, r.status, r.outcome, (r.unix_s or zero) - zero, r.unix_s,
            detail=r.detail,
        )
        for r in ordered
    )  # fmt: skip
    lost = f"k6 dropped {dropped:,.0f} iterations: the rate that was meant was not sent"
    return [
        Imported(
            "k6",
            "k6",
            shifted,
            datetime.fromtimestamp(zero, UTC),
            target=target,
            protocol="plain",
            duration_s=shifted[-1].at_s,
            reasons=(lost,) if dropped else (),
            notes=("no intended starts: what the sender waited is not in it", "pool holds DNS"),
        )
    ]


def _row(time: str, tags: Mapping[str, Any], figures: Mapping[str, float]) -> Row:
    connect, tls = figures.get("connecting", 0.0), figures.get("tls_handshaking", 0.0)
    known = {
        # A dial that was given up may last longer than the wait for the connection that was used.
        "pool": max(0.0, figures["blocked"] - connect - tls),
        "connect": connect,
        "tls": tls,
        "send": figures["sending"],
        "transfer": figures["receiving"],
    }
    wall = figures["blocked"] + figures["sending"] + figures["waiting"] + figures["receiving"]
    ended = datetime.fromisoformat(_micros(time)).timestamp()
    code = str(tags.get("status", "0"))
    status = int(code) if code.isdigit() and code != "0" else None
    detail = {"error": tags.get("error"), "error_code": tags.get("error_code")}
    return row_of(
        wall,
        known,
        at_s=0.0,
        unix_s=ended - wall / 1000,
        status=status,
        outcome=_outcome(status, str(tags.get("error_code", ""))),
        detail=detail,
    )


def _outcome(status: int | None, error_code: str) -> Outcome:
    if error_code in TIMED_OUT:
        return "timeout"
    if status in REFUSALS:
        return "refused"
    return "error" if status is None or status >= 400 else "ok"


def _micros(time: str) -> str:
    """A moment of nanoseconds, as Python reads it: with six digits, and the zone kept."""
    head, dot, rest = time.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if dot else ""
    return f"{head}.{digits[:6].ljust(6, '0')}{zone}" if dot else time
