"""The tail budget: which parts fill the slowest requests.

Percentiles of parts never add up; the means of the parts over the slowest rows do, exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.latency.bootstrap import Resamples
from tailrace.latency.quantiles import BEYOND_MIN, quantile, quantiles_of
from tailrace.latency.sample import Floats, Sample, sample
from tailrace.wire.record import Row

TAILS = (0.99, 0.95, 0.9, 0.75)
"""The tails that a report may choose from, deepest first."""


@dataclass(frozen=True, slots=True)
class TailBudget:
    """The mean of each part over the rows whose total reaches the q-quantile."""

    q: float
    threshold_ms: float
    """The q-quantile of the total."""
    rows: int
    censored: int
    """Rows among them that were cut off: what they add is a lower bound."""
    parts: Mapping[str, float]
    total_ms: float
    """The sum of the parts: the mean wall time of these rows, within IDENTITY_MS."""

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        return {
            "q": self.q,
            "threshold_ms": self.threshold_ms,
            "rows": self.rows,
            "censored": self.censored,
            "parts": dict(self.parts),
            "total_ms": self.total_ms,
        }


def tail_budget(rows: Sequence[Row], q: float = 0.95) -> TailBudget:
    """The budget of the slowest 1 - q of the steady, served rows; raises BadSample where none are."""
    return tail_of(sample(rows), q)


def tail_of(steady: Sample, q: float) -> TailBudget:
    """The same of a sample that is already made."""
    threshold = quantile(steady.wall, q)
    slowest = steady.wall >= threshold
    means = steady.ms[slowest].mean(axis=0)
    parts = {name: float(mean) for name, mean in zip(steady.names, means, strict=True)}
    return TailBudget(
        q=q,
        threshold_ms=threshold,
        rows=int(slowest.sum()),
        censored=int(steady.censored[slowest].sum()),
        parts=parts,
        total_ms=sum(parts.values()),
    )


def deepest_tail(n: int) -> float | None:
    """The deepest tail that holds BEYOND_MIN of n rows; None where even the slowest quarter does not."""
    return next((q for q in TAILS if n * (1.0 - q) >= BEYOND_MIN - 1e-9), None)


def resampled_tails(wall: Floats, columns: Floats, draws: Resamples, q: float) -> Floats:
    """The mean of each column over the slowest rows of each resample; the threshold moves with them."""
    found: list[Floats] = []
    for rows in draws.draws():
        totals = wall[rows]
        slowest = totals >= quantiles_of(totals, q)[:, None]
        counts = slowest.sum(axis=1)
        chosen = rows[slowest]
        ends = np.concatenate(([0], np.cumsum(counts)[:-1]))
        sums = np.add.reduceat(columns[chosen], ends, axis=0)
        found.append(sums / counts[:, None])
    return np.concatenate(found)
