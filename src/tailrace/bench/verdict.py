"""Can a run's figures be believed? Reasons why not, and the load as it was really sent.

A sender that was late, sent less than it meant to, or breaks Little's law has measured itself.
"""

from collections.abc import Sequence

import numpy as np

from tailrace.bench.generator import Sent
from tailrace.bench.scenario import LoadTable
from tailrace.bench.steady import Settled
from tailrace.latency.runs.summary import Load, steady
from tailrace.wire.record import Row

LAG_ALLOWED = 0.05
"""The loop's lag at p99, as a share of the median: more, and the lag is what was measured."""
LAG_FLOOR_MS = 0.25
"""A lag below this is the machine's own; medians of a few milliseconds would never be valid."""
ACHIEVED_MIN = 0.98
"""Less of the offered rate than this was not the load that was meant."""
LITTLE_ALLOWED = 0.10
"""By which share in-flight may miss rate x time, besides what few looks explain."""
CACHED_TOLD = 0.05
"""A larger share of answers out of a cache gets a note."""


def load_of(
    load: LoadTable,
    blocks: Sequence[Sent],
    rows: Sequence[Row],
    found: Settled,
) -> Load:
    """The load as it was, of all rows of the run."""
    seconds = sum(sent.steady_s for sent in blocks)
    offered, on_time = sum(s.offered for s in blocks), sum(s.on_time for s in blocks)
    late = [late for sent in blocks for late in sent.lag.late_ms]
    inside = [count for sent in blocks for count in sent.lag.inside]
    answered = sum(row.outcome == "ok" for row in steady(rows))
    in_flight = float(np.mean(inside)) if inside else None
    return Load(
        kind=kind_of(load),
        seed=load.seed,
        duration_s=seconds,
        offered_per_s=None if load.closed or not seconds else offered / seconds,
        achieved_per_s=on_time / seconds if seconds else None,
        answered_per_s=answered / seconds if seconds else None,
        in_flight=in_flight,
        little_miss=_little(rows, blocks, in_flight),
        lag_p50_ms=float(np.quantile(late, 0.5)) if late else None,
        lag_p99_ms=float(np.quantile(late, 0.99)) if late else None,
        concurrency=load.clients if load.kind == "closed" else None,
        think_s=load.think.value if load.closed else None,
        steady=found.steady,
    )


def kind_of(load: LoadTable) -> str:
    """How requests were sent, in the words of a summary."""
    return (
        load.kind
        if load.kind in {"closed", "burst", "replay", "staircase"}
        else f"open-{load.kind}"
    )


def reasons(load: Load, rows: Sequence[Row], blocks: Sequence[Sent], found: Settled) -> list[str]:
    """Why the run is not valid, each in one sentence; empty where it is."""
    why = []
    answered = [row.wall_ms for row in rows if row.outcome == "ok"]
    if answered and load.lag_p99_ms is not None:
        allowed = max(LAG_ALLOWED * float(np.median(answered)), LAG_FLOOR_MS)
        if load.lag_p99_ms > allowed:
            why.append(
                f"the sender was busy itself: its loop was {load.lag_p99_ms:.2f} ms late at p99, "
                f"above {allowed:.2f} ms"
            )
    offered, on_time = sum(s.offered for s in blocks), sum(s.on_time for s in blocks)
    if load.offered_per_s and offered and on_time / offered < ACHIEVED_MIN:
        why.append(
            f"only {on_time / offered:.1%} of the offered rate was sent: the sender did not keep up"
        )
    if load.little_miss is not None and load.in_flight:
        looks = sum(sum(sent.lag.inside) for sent in blocks)
        if load.little_miss > LITTLE_ALLOWED + 2.0 / np.sqrt(max(1, looks)):
            why.append(
                f"Little's law is broken by {load.little_miss:.0%}: requests on their way and the "
                "times measured do not fit"
            )
    if found.steady is False:
        way = "rise" if found.growth > 0 else "fall"
        why.append(
            f"not steady: times still {way} by {abs(found.growth):.0%} over the second half; "
            + ("offer less" if found.growth > 0 else "measure for longer")
        )
    return why


def notes(rows: Sequence[Row], blocks: Sequence[Sent]) -> list[str]:
    """What a reader should know besides."""
    found = []
    cached = sum(row.detail.get("cache") == "hit" for row in rows)
    if rows and cached / len(rows) > CACHED_TOLD:
        found.append(f"{cached / len(rows):.0%} of the answers came out of the server's cache")
    odd = sum("inconsistent" in row.detail for row in rows)
    if odd:
        found.append(f"{odd} rows where the server's figures do not fit the wait")
    thought = sum("reasoning_flag" in row.detail for row in rows)
    if thought:
        found.append(f"{thought} answers still thought though reasoning was asked to be off")
    asked = [
        r for r in rows if r.detail.get("reasoning_asked", "off") != "off" and r.outcome == "ok"
    ]
    silent = sum(not _thought(row) for row in asked)
    if silent:
        found.append(
            f"{silent} of {len(asked)} answers were asked to think and none was seen to: the model "
            "has no thoughts, or neither shows nor counts them"
        )
    if len(blocks) > 1:
        found.append(f"{len(blocks)} blocks, taken in turns with the other cases")
    return found


def _little(rows: Sequence[Row], blocks: Sequence[Sent], in_flight: float | None) -> float | None:
    """By which share the requests seen on their way miss rate x time (Little 1961).

    A request's time counts as far as it lies within the steady phase, so that the edges of a run do not.
    """
    seconds = sum(sent.steady_s for sent in blocks)
    if not rows or not seconds or not in_flight:
        return None
    begun = np.array([row.at_s + _sched(row) / 1000 for row in rows])
    ended = np.array([row.at_s + row.wall_ms / 1000 for row in rows])
    inside = 0.0
    for sent in blocks:
        since, until = ((moment - sent.zero_ns) / 1e9 for moment in (sent.steady_ns, sent.ended_ns))
        within = np.minimum(ended, until) - np.maximum(begun, since)
        inside += float(within.clip(min=0.0).sum())
    return abs(in_flight - inside / seconds) / in_flight


def _thought(row: Row) -> bool:
    return bool(row.detail.get("reasoning_tokens") or row.detail.get("reasoning_chunks"))


def _sched(row: Row) -> float:
    part = row.parts.get("sched")
    return part.ms if part is not None else 0.0
