"""Moving-block bootstrap: how far a figure over rows in time order might lie from the true one.

Whole stretches of neighbouring rows are drawn, not single rows, because neighbours in a queue are alike;
all columns are drawn together, because the parts of a request belong together. Seeded, so a report can be
made again. Knows arrays only.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailrace.latency.interval import Interval
from tailrace.latency.sample import Floats

Indices = NDArray[np.int32]

RESAMPLES = 5_000
BLOCKS_MAX = 1_000
"""Blocks in one resample; runs of more rows take longer blocks."""
DRAWS_MAX = 50_000_000
"""Rows drawn one by one in all resamples of a run, from which on there are fewer resamples."""
RESAMPLES_MIN = 1_000
CHUNK = 2_000_000
"""Rows drawn at once: bounds the memory."""


@dataclass(frozen=True, slots=True)
class Resamples:
    """The draws: for each resample the first rows of its blocks."""

    n: int
    length: int
    """Rows in a block; the last block of a resample is cut so that it has n rows."""
    starts: Indices

    @classmethod
    def of(cls, totals: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> "Resamples":
        """Draws for a run whose totals, in time order, say how long rows stay alike."""
        return cls.draw(len(totals), block_length(totals), resamples=resamples, seed=seed)

    @classmethod
    def draw(cls, n: int, length: int, *, resamples: int = RESAMPLES, seed: int = 0) -> "Resamples":
        """Draws of blocks of this length.

        The run is closed to a ring, so that every row is drawn equally often (Politis and Romano 1992);
        with plain moving blocks the first and the last rows are rare.
        """
        blocks = math.ceil(n / length)
        random = np.random.default_rng(seed)
        return cls(n, length, random.integers(0, n, (resamples, blocks), dtype=np.int32))

    def means(self, columns: Floats) -> Floats:
        """The mean of each column in each resample; one line per resample."""
        whole = self._block_sums(columns, self.length)
        rest = self.n - (self.starts.shape[1] - 1) * self.length
        last = self._block_sums(columns, rest)
        means = np.empty((len(self.starts), columns.shape[1]))
        for column in range(columns.shape[1]):
            sums = whole[:, column][self.starts[:, :-1]].sum(axis=1)
            means[:, column] = (sums + last[:, column][self.starts[:, -1]]) / self.n
        return means

    def _block_sums(self, columns: Floats, length: int) -> Floats:
        """What a block of this length sums to, by its first row."""
        ring = np.concatenate((np.zeros((1, columns.shape[1])), columns, columns[:length]))
        sums = np.cumsum(ring, axis=0)
        return np.asarray(sums[length : length + self.n] - sums[: self.n], dtype=np.float64)

    def draws(self) -> Iterator[Indices]:
        """Row numbers, some resamples at a time, one line per resample: for what is no mean.

        Of very long runs fewer resamples are drawn, never fewer than RESAMPLES_MIN.
        """
        wanted = max(RESAMPLES_MIN, DRAWS_MAX // self.n)
        starts = self.starts[:wanted]
        step = max(1, CHUNK // self.n)
        within = np.arange(self.length, dtype=np.int32)
        for first in range(0, len(starts), step):
            some = starts[first : first + step]
            rows = (some[:, :, None] + within).reshape(len(some), -1)[:, : self.n]
            yield np.asarray(rows % self.n, dtype=np.int32)


def block_length(values: Floats) -> int:
    """Rows in a block: as many as stay alike, at least the cube root of n, at most a quarter.

    Source: Politis and White (2004), with the correction of Patton, Politis and White (2009), for blocks
    on a ring: b = (2 G^2 / D n)^(1/3), with the flat-top window over the autocovariances.
    """
    n = len(values)
    least = max(1, round(n ** (1 / 3)), math.ceil(n / BLOCKS_MAX))
    most = max(least, n // 4)
    return int(np.clip(math.ceil(_politis_white(values)), least, most))


def _politis_white(values: Floats) -> float:
    n = len(values)
    centred = values - values.mean()
    variance = float(centred @ centred) / n
    lags_max = min(n - 1, math.ceil(math.sqrt(n)) + _insignificant_run(n))
    if n < 10 or variance <= 1e-12 * float(np.abs(values).max()) ** 2:
        return 1.0
    covariance = np.array([centred[: n - lag] @ centred[lag:] / n for lag in range(lags_max + 1)])
    window = min(lags_max, 2 * _last_significant(covariance / covariance[0], n))
    if window == 0:
        return 1.0
    lags = np.arange(1, window + 1)
    flat_top = np.minimum(1.0, 2.0 * (1.0 - lags / window))
    weighted = flat_top * covariance[1 : window + 1]
    spectrum = covariance[0] + 2.0 * weighted.sum()
    slope = 2.0 * (lags * weighted).sum()
    if spectrum <= 0:
        return 1.0
    return float((2.0 * slope**2 / (4.0 / 3.0 * spectrum**2) * n) ** (1 / 3))


def _insignificant_run(n: int) -> int:
    """How many lags in a row must be insignificant before the rest is taken for noise."""
    return max(5, math.ceil(math.sqrt(math.log10(n)))) if n > 1 else 5


def _last_significant(correlation: Floats, n: int) -> int:
    """The lag after which a whole run of autocorrelations is noise; 0 if that is so from the start."""
    bound = 2.0 * math.sqrt(math.log10(n) / n)
    run = _insignificant_run(n)
    loud = np.abs(correlation[1:]) > bound
    for lag in range(len(loud) - run + 1):
        if not loud[lag : lag + run].any():
            return lag
    return int(np.flatnonzero(loud)[-1]) + 1 if loud.any() else 0


def widened(resampled: Floats, exact: Floats, n: int) -> Floats:
    """What the resamples of `n` rows gave, as far from `exact` as it would be with many rows.

    Resamples of few rows lie too close together: by sqrt((n - 1) / n), and by what the normal
    distribution lacks of Student's (Hesterberg 2015, the expanded percentile interval; the quotient of
    the quantiles at 99 % by Abramowitz and Stegun 26.7.5).
    """
    z, free = 2.5758, n - 1
    student = 1 + (z**2 + 1) / (4 * free) + (5 * z**4 + 16 * z**2 + 3) / (96 * free**2)
    return np.asarray(exact + (resampled - exact) * student * math.sqrt(n / free), np.float64)


def percentile_interval(resampled: Floats, level: float = 0.95) -> Interval:
    """The middle share of what the resamples gave."""
    miss = (1.0 - level) / 2.0
    ordered = np.sort(resampled)
    last = len(ordered) - 1
    return Interval(
        float(ordered[math.floor(miss * last)]), float(ordered[math.ceil((1.0 - miss) * last)])
    )


def p_value(resampled: Floats) -> float:
    """How likely so large a difference is without any: two-sided, from the resamples beyond nought."""
    beyond = min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    return min(1.0, 2.0 * (beyond + 1) / (len(resampled) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values made larger for having been looked at together, in the given order (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
