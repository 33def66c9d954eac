"""A run in numbers: how it was loaded, what became of it, how long each part took, is it to be believed.

Computed from the rows alone, so that it can be computed again. Knows nothing of files.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tailrace.wire.record import CLIENT_PARTS, Row

SCHEMA = 1
"""Grows when a reader of older summaries would misread the newer ones."""
TAIL = 0.95
"""The tail budget's rows: those whose wall time is at or beyond this quantile."""
BEYOND = 10
"""How many rows must lie beyond a quantile before it is told."""
UNFINISHED = "the run did not come to its end; what it measured until then is kept"


class Shape(BaseModel):
    """Data of a summary: unknown names are kept out of the way, known ones are checked."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Figures(Shape):
    """One part, or the whole, over the answered requests of the steady phase; milliseconds."""

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
    floor: float | None = None
    """Median of the cold phase's warm rows or of an idle probe, where one was measured."""
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
    """Answered requests of the steady phase: what the figures are over."""
    censored: int = 0
    """Requests that somebody stopped waiting for: their times are lower bounds."""
    censored_from_ms: float | None = None
    """The shortest of those: no quantile that reaches it is told."""
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
    """The rows that figures are made of: neither cold nor warm-up."""
    return [row for row in rows if row.phase == "steady"]


def tellable(n: int, q: float) -> bool:
    """Whether `n` rows carry the quantile: BEYOND of them must lie beyond it."""
    return n * (1.0 - q) >= BEYOND - 1e-9


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
    measured = steady(rows)
    answered = [row for row in measured if row.outcome == "ok"]
    cut = [row.wall_ms for row in measured if row.censored]
    total, parts = figures(answered, len(cut))
    leading = max(parts, key=lambda name: parts[name].mean) if parts else None
    why = [*reasons]
    if not answered:
        why.append("no request was answered")
    return Summary(
        **head.model_dump(include=set(Head.model_fields)),
        ended=ended,
        phases=dict(Counter(row.phase for row in rows)),
        outcomes=dict(Counter(row.outcome for row in measured)),
        statuses=dict(Counter(str(row.status) for row in measured if row.status is not None)),
        n=len(answered),
        censored=len(cut),
        censored_from_ms=min(cut, default=None),
        total=total,
        parts=parts,
        leading=leading,
        load=load,
        validity=Validity(valid=not why, reasons=tuple(why)),
        notes=tuple(notes),
    )


def figures(answered: Sequence[Row], cut: int = 0) -> tuple[Figures | None, dict[str, Figures]]:
    """The whole's figures and every part's; `cut` more requests were not waited for to the end."""
    if not answered:
        return None, {}
    walls = np.array([row.wall_ms for row in answered])
    slow = walls >= np.quantile(walls, TAIL, method="inverted_cdf")
    mean = float(walls.mean())
    parts = {}
    for name in parts_of(answered):
        values = np.array([_ms(row, name) for row in answered])
        sources = Counter(row.parts[name].source for row in answered if name in row.parts)
        parts[name] = _figures(values, slow, mean, sources, 0)
    return _figures(walls, slow, mean, {"measured": len(walls)}, cut), parts


def parts_of(rows: Sequence[Row]) -> list[str]:
    """The names of the parts that any row has, in the order of reports; names of others come last."""
    seen = {name for row in rows for name in row.parts}
    known = [name for name in CLIENT_PARTS if name in seen]
    return known + sorted(seen - set(known))


def _figures(
    values: "np.ndarray[Any, np.dtype[np.float64]]",
    slow: "np.ndarray[Any, np.dtype[np.bool_]]",
    whole: float,
    sources: Mapping[Any, int],
    cut: int,
) -> Figures:
    """Those who were cut off count as slower than everybody who was answered."""
    everybody = np.concatenate([values, np.full(cut, np.inf)]) if cut else values

    def told(q: float) -> float | None:
        if not tellable(len(everybody), q) and q > 0.5:
            return None
        found = float(np.quantile(everybody, q, method="inverted_cdf"))
        return found if np.isfinite(found) else None

    return Figures(
        mean=float(values.mean()),
        share=float(values.mean()) / whole if whole else 0.0,
        p50=told(0.5),
        p95=told(0.95),
        p99=told(0.99),
        worst=float(values.max()),
        tail=float(values[slow].mean()),
        sources={str(name): count for name, count in sources.items()},
    )


def _ms(row: Row, name: str) -> float:
    part = row.parts.get(name)
    return 0.0 if part is None else part.ms
