"""Quantiles that say how sure they are, and that are not printed where the rows cannot carry them.

Intervals come from order statistics (binomial), so no shape of the distribution is assumed. A request
that was cut off (a timeout) is right-censored: it counts as slower than every answered one. Knows numbers
only, no rows and no parts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.latency.bootstrap import Resamples, percentile_interval
from tailrace.latency.interval import Interval
from tailrace.latency.sample import Bools, Floats

BEYOND_MIN = 10
"""A quantile is printed only with this many rows beyond it: p95 from 200 rows on, p99 from 1000."""

TOO_SMALL = "n too small"

Values = Sequence[float] | Floats


def quantile(values: Values, q: float) -> float:
    """The q-quantile by linear interpolation (Hyndman and Fan's type 7, numpy's default).

    Infinite values are allowed, for what was cut off. Raises ValueError on no values or a q outside 0..1.
    """
    return float(quantiles_of(np.asarray(values, dtype=np.float64), q))


def quantiles_of(values: Floats, q: float) -> Floats:
    """The q-quantile along the last axis, for many samples at once."""
    n = values.shape[-1]
    if n == 0 or not 0.0 <= q <= 1.0:
        raise ValueError(f"no {q}-quantile of {n} values")
    place = (n - 1) * q
    below = math.floor(place)
    above = min(below + 1, n - 1)
    ordered = np.partition(values, (below, above), axis=-1)
    low, high = ordered[..., below], ordered[..., above]
    weight = place - below
    if weight == 0.0:  # infinity times nothing would be no number
        return np.asarray(low, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * weight
    return np.asarray(np.where(low == high, low, between), dtype=np.float64)


def interval(values: Values, q: float, level: float = 0.95) -> Interval:
    """Two order statistics that enclose the true q-quantile with at least this confidence.

    Source: the number of values below the quantile is binomial(n, q). An end that no order statistic
    bounds is infinite: six values are the fewest that bound a median at 95 %.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    below = np.cumsum(_binomial(n, q))
    miss = (1.0 - level) / 2.0
    # Ranks count from 1: P(at most low - 1 values below) and P(at least high values below) are <= miss.
    low = int(np.searchsorted(below, miss, side="right"))
    high = int(np.searchsorted(below, 1.0 - miss, side="left")) + 1
    return Interval(
        low=float(ordered[low - 1]) if low >= 1 else -math.inf,
        high=float(ordered[high - 1]) if high <= n else math.inf,
    )


def _binomial(n: int, q: float) -> Floats:
    """The probabilities of 0..n hits in n tries."""
    if q in {0.0, 1.0}:
        certain = np.zeros(n + 1)
        certain[n if q else 0] = 1.0
        return certain
    k = np.arange(n + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    chance = logs[n] - logs[k] - logs[n - k] + k * math.log(q) + (n - k) * math.log1p(-q)
    return np.asarray(np.exp(chance), dtype=np.float64)


def enough(n: int, q: float) -> bool:
    """Whether n rows carry a q-quantile: at least BEYOND_MIN of them lie beyond it."""
    return n * min(q, 1.0 - q) >= BEYOND_MIN - 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure in milliseconds with its interval, or why there is none."""

    value: float | None
    interval: Interval | None = None
    at_least: float | None = None
    """Where the true figure lies beyond what was waited for: its lower bound."""
    refused: str | None = None

    def text(self) -> str:
        """As it is printed: "12.3 ms", ">= 1500 ms (timeout)", "n too small"."""
        if self.value is not None:
            return ms_text(self.value)
        if self.at_least is not None:
            return f">= {ms_text(self.at_least)} (timeout)"
        return self.refused or TOO_SMALL

    def to_json(self) -> dict[str, object]:
        """What is known of it; a figure that is not printed is not written either."""
        body: dict[str, object] = {"ms": self.value}
        if self.interval is not None:
            body["interval"] = self.interval.to_json()
        if self.at_least is not None:
            body["at_least"] = self.at_least
        if self.refused is not None:
            body["refused"] = self.refused
        return body


def ms_text(ms: float) -> str:
    """Milliseconds with the digits that mean something."""
    size = abs(ms)
    digits = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{ms:.{digits}f} ms"


def percentile(values: Values, q: float, censored: Bools | None = None) -> Estimate:
    """The q-quantile as far as the values carry it; `censored` marks those that are lower bounds.

    The median is given from any number of values: its interval, open below six, says the rest.
    """
    waited = np.asarray(values, dtype=np.float64)
    if q > 0.5 and not enough(len(waited), q):
        return Estimate(None, refused=TOO_SMALL)
    true = waited if censored is None else np.where(censored, math.inf, waited)
    value = quantile(true, q)
    span = interval(true, q)
    if math.isinf(value):
        return Estimate(None, span, at_least=quantile(waited, q))
    return Estimate(value, span)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run says about its latency."""

    n: int
    censored: int
    """How many of them were cut off; their true latency is longer."""
    mean: Estimate
    p50: Estimate
    p95: Estimate
    p99: Estimate
    worst: Estimate

    @classmethod
    def of(cls, values: Values, censored: Bools | None = None, seed: int = 0) -> "Summary":
        """Over values in time order; raises ValueError on none and on what is no number."""
        waited = np.asarray(values, dtype=np.float64)
        if not len(waited) or not np.isfinite(waited).all():
            raise ValueError("a summary is of one or more finite numbers")
        cut = int(censored.sum()) if censored is not None else 0
        worst = float(waited.max())
        return cls(
            n=len(waited),
            censored=cut,
            mean=_mean(waited, cut > 0, seed),
            p50=percentile(waited, 0.50, censored),
            p95=percentile(waited, 0.95, censored),
            p99=percentile(waited, 0.99, censored),
            worst=Estimate(None, at_least=worst) if cut else Estimate(worst),
        )

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        names = ("mean", "p50", "p95", "p99", "worst")
        figures = {name: getattr(self, name).to_json() for name in names}
        return {"n": self.n, "censored": self.censored, **figures}


def _mean(waited: Floats, cut: bool, seed: int) -> Estimate:
    mean = float(waited.mean())
    if cut:
        return Estimate(None, at_least=mean)
    if len(waited) == 1:
        return Estimate(mean, Interval(-math.inf, math.inf))
    means = Resamples.of(waited, seed=seed).means(waited[:, None])[:, 0]
    return Estimate(mean, percentile_interval(means))
