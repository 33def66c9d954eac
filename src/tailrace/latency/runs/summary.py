"""A run in numbers: how it was loaded, what became of it, how long each part took, is it to be believed.

Computed from the rows alone, so that it can be computed again. Knows nothing of files.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tailrace.latency.quantiles import percentile, quantile
from tailrace.latency.sample import STEADY, BadSample, Bools, Floats, Sample, sample
from tailrace.wire.record import CLIENT_PARTS, Row

SCHEMA = 1
"""Grows when a reader of older summaries would misread the newer ones."""
TAIL = 0.95
"""The tail budget's rows: those whose wall time is at or beyond this quantile."""
UNFINISHED = "the run did not come to its end; what it measured until then is kept"


class Shape(BaseModel):
    """Data of a summary: unknown names are kept out of the way, known ones are checked."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Figures(Shape):
    """One part, or the whole, over the served requests of the steady phase; milliseconds.

    Served is answered or cut off: who was not waited for counts with the time that was waited.
    """

    mean: float
    share: float
    """Of the mean of the whole."""
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    """None where there are too few rows to tell, or where the quantile was cut off by a timeout."""
    worst: float
    tail: float | None = None
    """Mean over the slowest twentieth of the requests: the parts' add up to the whole's."""
    sources: dict[str, int] = Field(default_factory=dict)
    """How many rows know it from where: measured, declared, estimated, residual."""


class Load(Shape):
    """How requests were sent, and whether the sender kept up."""

    kind: str
    """open-poisson, open-constant, staircase, burst, replay, closed, one-by-one, imported"""
    seed: int | None = None
    duration_s: float
    """Of the steady phase."""
    offered_per_s: float | None = None
    achieved_per_s: float | None = None
    """Requests that were begun, per second."""
    answered_per_s: float | None = None
    in_flight: float | None = None
    """Mean number of requests on their way."""
    little_miss: float | None = None
    """By which share in-flight misses rate x mean time (Little's law)."""
    lag_p50_ms: float | None = None
    lag_p99_ms: float | None = None
    """How late the sender's own event loop was."""
    concurrency: int | None = None
    """Clients of a closed loop."""
    think_s: float | None = None
    steady: bool | None = None
    """Whether the second half of the steady phase was no slower than the first; None: not tested."""


class Validity(Shape):
    """Whether the figures can be believed, and why not."""

    valid: bool
    reasons: tuple[str, ...] = ()


class Head(Shape):
    """What a run is, known before its first request."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    id: str
    kind: str
    """bench, probe, watch or import"""
    scenario: str
    question: str = ""
    case: str = ""
    """Which of the scenario's cases: "batch 8, 4 clients"."""
    target: str
    """The address that was asked, without credentials and query."""
    protocol: str = ""
    """What is spoken there: openai-chat, openai-embeddings, tei, ..."""
    model: str | None = None
    began: datetime
    best_before: date
    plan: dict[str, Any] = Field(default_factory=dict)
    """The scenario with everything resolved, so that it can be asked again."""


class Summary(Head):
    """The head, and what came out."""

    ended: datetime | None = None
    phases: dict[str, int] = Field(default_factory=dict)
    outcomes: dict[str, int] = Field(default_factory=dict)
    """Of the steady phase."""
    statuses: dict[str, int] = Field(default_factory=dict)
    n: int = 0
    """Served requests of the steady phase: what the figures are over."""
    censored: int = 0
    """Requests that somebody stopped waiting for: their times are lower bounds."""
    censored_from_ms: float | None = None
    """The shortest of those; quantiles among them are not told."""
    total: Figures | None = None
    parts: dict[str, Figures] = Field(default_factory=dict)
    leading: str | None = None
    """The part with the largest share of the mean."""
    load: Load | None = None
    validity: Validity = Validity(valid=False, reasons=(UNFINISHED,))
    notes: tuple[str, ...] = ()


def stale(head: Head, today: date) -> bool:
    """Whether the run is past its best-before date."""
    return today > head.best_before


def steady(rows: Sequence[Row]) -> list[Row]:
    """The rows of the steady phase: neither cold nor warm-up."""
    return [row for row in rows if row.phase == STEADY]


def parts_of(rows: Sequence[Row]) -> list[str]:
    """The names of the parts that any row has, in the order of reports; names of others come last."""
    seen = {name for row in rows for name in row.parts}
    known = [name for name in CLIENT_PARTS if name in seen]
    return known + sorted(seen - set(known))


def summarize(
    head: Head,
    rows: Sequence[Row],
    *,
    ended: datetime | None = None,
    load: Load | None = None,
    reasons: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Summary:
    """The summary of a run; `reasons` say why it is not valid, and none says that it is."""
    why = [*reasons]
    total, parts, cut = None, dict[str, Figures](), list[float]()
    try:
        found = sample(rows)
    except BadSample as bad:
        why.append(str(bad))
    else:
        total, parts = figures(found)
        cut = found.wall[found.censored].tolist()
    measured = steady(rows)
    leading = max(parts, key=lambda name: parts[name].mean) if parts else None
    return Summary(
        **head.model_dump(include=set(Head.model_fields)),
        ended=ended,
        phases=dict(Counter(row.phase for row in rows)),
        outcomes=dict(Counter(row.outcome for row in measured)),
        statuses=dict(Counter(str(row.status) for row in measured if row.status is not None)),
        n=0 if total is None else found.n,
        censored=len(cut),
        censored_from_ms=min(cut, default=None),
        total=total,
        parts=parts,
        leading=leading,
        load=load,
        validity=Validity(valid=not why, reasons=tuple(why)),
        notes=tuple(notes),
    )


def figures(found: Sample) -> tuple[Figures, dict[str, Figures]]:
    """The whole's figures and every part's, over one sample."""
    slow = found.wall >= quantile(found.wall, TAIL)
    whole = float(found.wall.mean())
    parts = {
        name: _figures(
            found.ms[:, column],
            slow,
            whole,
            Counter(row.parts[name].source for row in found.rows if name in row.parts),
        )
        for column, name in enumerate(found.names)
    }
    return _figures(found.wall, slow, whole, {"measured": found.n}, found.censored), parts


def _figures(
    values: Floats,
    slow: Bools,
    whole: float,
    sources: Mapping[Any, int],
    censored: Bools | None = None,
) -> Figures:
    p50, p95, p99 = (percentile(values, q, censored).value for q in (0.5, 0.95, 0.99))
    return Figures(
        mean=float(values.mean()),
        share=float(values.mean()) / whole if whole else 0.0,
        p50=p50,
        p95=p95,
        p99=p99,
        worst=float(values.max()),
        tail=float(values[slow].mean()),
        sources={str(name): count for name, count in sources.items()},
    )
