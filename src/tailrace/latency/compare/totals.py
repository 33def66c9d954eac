"""Is the whole slower: p50, p95 and mean of the total, and the share that is answered at all.

"Worse" is only what lies beyond noise: the interval of the change leaves no room for nothing, and the
change is more than the same thing measured twice differs by.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from tailrace.latency.bootstrap import Resamples, percentile_interval
from tailrace.latency.compare.pairs import Pairing
from tailrace.latency.interval import Change, Interval
from tailrace.latency.quantiles import enough, quantile, quantiles_of
from tailrace.latency.sample import Bools, Floats, Sample

LEVEL = 0.95
STRETCHES = 8
STRETCHES_MIN = 4
ERRORS = 2.0
"""Standard errors between stretches of time that a change must exceed where no A/A was measured."""
RESAMPLES = 1_000
"""Of the answered share: enough for a variance."""

Turn = Literal["better", "same", "worse"]


@dataclass(frozen=True, slots=True)
class TotalChange:
    """One figure of the total in both runs."""

    name: str
    unit: Literal["ms", "share"]
    before: float
    """Infinite where the figure lies beyond what was waited for."""
    after: float
    change: Change
    noise: float | None
    """What it must exceed: the difference in A/A, or ERRORS between stretches; None where unknown."""
    noise_from: Literal["A/A", "stretches of time"] | None

    @property
    def turn(self) -> Turn:
        """Which way it went, beyond noise."""
        if not self.change.sure or abs(self.change.value) <= (self.noise or 0.0):
            return "same"
        longer = self.change.value > 0
        return "worse" if longer == (self.unit == "ms") else "better"

    def to_json(self) -> dict[str, object]:
        """Every figure by name; what is not finite is null."""
        return {
            "before": self.before if math.isfinite(self.before) else None,
            "after": self.after if math.isfinite(self.after) else None,
            "change": self.change.to_json(),
            "noise": self.noise,
            "noise_from": self.noise_from,
            "turn": self.turn,
        }


def total_changes(pairs: Pairing, repeats: list[tuple[Sample, Sample]]) -> tuple[TotalChange, ...]:
    """Of p50, p95 (where both runs carry it), mean and the answered share.

    `repeats` are pairs of samples of the same thing: what they differ by is the noise. The intervals are
    made for all figures together (Bonferroni), so that four looks are no more likely to err than one.
    """
    n = min(pairs.before.n, pairs.after.n)
    asked: list[tuple[str, float]] = [("p50", 0.5)]
    if enough(n, 0.95):
        asked.append(("p95", 0.95))
    level = 1.0 - (1.0 - LEVEL) / (len(asked) + 2)
    found = [_quantile_change(pairs, name, q, level, repeats) for name, q in asked]
    if not (pairs.before.censored.any() or pairs.after.censored.any()):  # else no mean is known
        found.append(_mean_change(pairs, level, repeats))
    return (*found, _answered_change(pairs, level, repeats))


def _quantile_change(
    pairs: Pairing, name: str, q: float, level: float, repeats: list[tuple[Sample, Sample]]
) -> TotalChange:
    def figure(run: Sample) -> float | None:
        return quantile(_true(run), q) if q == 0.5 or enough(run.n, q) else None

    one, other = (
        _resampled(_true(run), draws, q)
        for run, draws in ((pairs.before, pairs.first), (pairs.after, pairs.second))
    )
    values = (quantile(_true(pairs.before), q), quantile(_true(pairs.after), q))
    return _change(name, values, _less(other, one), level, pairs, figure, repeats)


def _mean_change(pairs: Pairing, level: float, repeats: list[tuple[Sample, Sample]]) -> TotalChange:
    def figure(run: Sample) -> float:
        return float(run.wall.mean())

    one = pairs.first.means(pairs.before.wall[:, None])[:, 0]
    other = pairs.second.means(pairs.after.wall[:, None])[:, 0]
    values = (figure(pairs.before), figure(pairs.after))
    return _change("mean", values, other - one, level, pairs, figure, repeats)


def _change(
    name: str,
    values: tuple[float, float],
    resampled: Floats,
    level: float,
    pairs: Pairing,
    figure: Callable[[Sample], float | None],
    repeats: list[tuple[Sample, Sample]],
) -> TotalChange:
    noise = _repeated(figure, repeats)
    source: Literal["A/A", "stretches of time"] | None = "A/A"
    if noise is None:
        errors = [_between_stretches(run, figure) for run in (pairs.before, pairs.after)]
        known = [error for error in errors if error is not None]
        noise = ERRORS * math.sqrt(sum(known)) if len(known) == 2 else None
        source = "stretches of time" if noise is not None else None
    value = float(_less(np.array(values[1]), np.array(values[0])))
    change = Change(value, percentile_interval(resampled, level))
    return TotalChange(name, "ms", values[0], values[1], change, noise, source)


def _answered_change(
    pairs: Pairing, level: float, repeats: list[tuple[Sample, Sample]]
) -> TotalChange:
    shares = (pairs.before.answered_share, pairs.after.answered_share)
    ends = [_wilson(run.answered, level) for run in (pairs.before, pairs.after)]
    # Newcombe (1998), method 10: the ends of both shares' own intervals, combined.
    value = shares[1] - shares[0]
    interval = Interval(
        value - math.hypot(shares[1] - ends[1].low, ends[0].high - shares[0]),
        value + math.hypot(ends[1].high - shares[1], shares[0] - ends[0].low),
    )
    noise = _repeated(lambda run: run.answered_share, repeats)
    change = Change(value, interval)
    return TotalChange("answered", "share", *shares, change, noise, "A/A" if repeats else None)


def _wilson(hits: Bools, level: float) -> Interval:
    """Of a share. Failures come in bursts: n is divided by how much more the share of blocks varies."""
    share, n = float(hits.mean()), float(len(hits))
    if 0 < share < 1:
        column = hits.astype(np.float64)
        blocks = float(Resamples.of(column, resamples=RESAMPLES).means(column[:, None]).var())
        n /= max(1.0, blocks / (share * (1 - share) / n))
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def _true(run: Sample) -> Floats:
    """Totals with what was cut off as slower than every answer."""
    return np.where(run.censored, math.inf, run.wall)


def _resampled(values: Floats, draws: Resamples, q: float) -> Floats:
    return np.concatenate([quantiles_of(values[rows], q) for rows in draws.draws()])


def _less(one: Floats, other: Floats) -> Floats:
    """The difference; nought where both lie beyond what was waited for."""
    both = np.isinf(one) & np.isinf(other)
    with np.errstate(invalid="ignore"):
        return np.where(both, 0.0, one - other)


def _repeated(
    figure: Callable[[Sample], float | None], repeats: list[tuple[Sample, Sample]]
) -> float | None:
    """The largest difference between two measurements of the same thing."""
    found = []
    for one, other in repeats:
        values = [value for value in (figure(one), figure(other)) if value is not None]
        if len(values) == 2 and all(map(math.isfinite, values)):
            found.append(abs(values[0] - values[1]))
    return max(found, default=None)


def _between_stretches(run: Sample, figure: Callable[[Sample], float | None]) -> float | None:
    """The variance of a figure of the whole run by how much its stretches differ."""
    for stretches in range(STRETCHES, STRETCHES_MIN - 1, -1):
        cut = [run.pick(part.tolist()) for part in np.array_split(np.arange(run.n), stretches)]
        if any(part.n < 10 for part in cut):
            continue
        values = [figure(part) for part in cut]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) == stretches:
            return float(np.var(known, ddof=1) / stretches)
    return None
