"""What a report is made of: a run's figures with their intervals, and two requests that stand for it.

Computed once, for Markdown and HTML alike. Knows nothing of how it is shown.
"""

from dataclasses import dataclass

import numpy as np

from tailrace.latency.quantiles import Estimate, percentile
from tailrace.latency.runs import Run
from tailrace.latency.sample import BadSample, Sample, sample
from tailrace.latency.shares import Share, Shares, shares_of
from tailrace.latency.tails import TailBudget, tail_of
from tailrace.wire.record import Row

SURE = 0.95
"""A part leads where it is the largest in so many of the resamples."""
TAIL = 0.95
MODEST = 0.0005
"""Parts of a smaller share of mean and tail are left out of drawings."""


@dataclass(frozen=True, slots=True)
class Line:
    """One part of the standard table."""

    name: str
    source: str
    share: Share
    p50: Estimate
    p95: Estimate
    p99: Estimate
    worst: float
    tail: float


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that is told of a run in which anything was measured."""

    run: Run
    sample: Sample
    shares: Shares
    budget: TailBudget
    lines: tuple[Line, ...]
    total: tuple[Estimate, Estimate, Estimate]
    typical: Row
    slow: Row

    @property
    def leader(self) -> Share:
        """The largest part."""
        return self.shares.leader()

    @property
    def shown(self) -> list[Line]:
        """The parts that are large enough to be drawn."""
        whole = self.budget.total_ms or 1.0
        return [
            line
            for line in self.lines
            if abs(line.share.share) >= MODEST or abs(line.tail / whole) >= MODEST
        ]


def told(run: Run) -> Told | None:
    """The figures of a run; None where nothing was measured."""
    try:
        found = sample(run.rows)
    except BadSample:
        return None
    shares, budget = shares_of(found), tail_of(found, TAIL)
    lines = tuple(
        Line(
            name=share.name,
            source=_source(run, share.name),
            share=share,
            p50=percentile(found.ms[:, column], 0.50),
            p95=percentile(found.ms[:, column], 0.95),
            p99=percentile(found.ms[:, column], 0.99),
            worst=float(found.ms[:, column].max()),
            tail=budget.parts[share.name],
        )
        for column, share in enumerate(shares.mean)
    )
    p50, p95, p99 = (percentile(found.wall, q, found.censored) for q in (0.5, 0.95, 0.99))
    return Told(
        run=run,
        sample=found,
        shares=shares,
        budget=budget,
        lines=lines,
        total=(p50, p95, p99),
        typical=_nearest(found, 0.50),
        slow=_nearest(found, 0.95),
    )


def _source(run: Run, name: str) -> str:
    figures = run.summary.parts.get(name)
    if figures is None or not figures.sources:
        return "-"
    return max(figures.sources, key=lambda source: figures.sources[source])


def _nearest(found: Sample, q: float) -> Row:
    """The request whose wall time is nearest to the quantile of the answered ones."""
    answered = np.flatnonzero(~found.censored)
    walls = found.wall[answered]
    at = int(np.argmin(np.abs(walls - np.quantile(walls, q))))
    return found.rows[int(answered[at])]
