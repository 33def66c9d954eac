"""The way beyond the connection's end: what the smallest of some cheap requests took.

Behind an edge or a proxy the connection's own round trip ends too early. A request that the server answers
without work (models, health) goes the whole way, so the quickest of a few of them bounds it. Knows nothing of
what is asked besides.
"""

from collections.abc import Sequence
from dataclasses import replace

from tailrace.wire.record import CLIENT_PARTS, Part, Row

NOTE = "by the quickest of some cheap requests on the same way"


def way_ms(rows: Sequence[Row]) -> float | None:
    """The way there and back by cheap requests on connections that stood already; None without any."""
    spans = [
        row.wall_ms - sum(row.parts[n].ms for n in ("sched", "pool", "send") if n in row.parts)
        for row in rows
        if row.outcome == "ok" and "connect" not in row.parts
    ]
    return min(spans, default=None)


def beyond(row: Row, whole_ms: float) -> Row:
    """The row with `net` as long as the whole way; what it grows by is taken from `other`.

    A row whose rest is shorter than that is left as it is.
    """
    net, other = row.parts.get("net"), row.parts.get("other")
    if other is None:
        return row
    grows = whole_ms - (net.ms if net is not None else 0.0)
    if grows <= 0 or grows > other.ms + 0.5 * whole_ms:
        return row
    parts = dict(row.parts)
    parts["net"] = Part(whole_ms, "estimated", net.ms if net is not None else 0.0, whole_ms, NOTE)
    parts["other"] = replace(other, ms=other.ms - grows)
    return replace(row, parts={name: parts[name] for name in CLIENT_PARTS if name in parts})
