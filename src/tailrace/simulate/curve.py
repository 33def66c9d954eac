"""How long a run takes by how many share it: seconds = a + b x items, fitted from what was measured.

Knows numbers only. Where no two sizes were measured there is no curve, but two bounds of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

SIZE_ROWS_MIN = 5
"""Requests of one size, before that size counts."""


@dataclass(frozen=True, slots=True)
class BatchCurve:
    """Seconds of one run of `items` of usual weight."""

    a: float
    b: float
    assumed: bool = False
    """Whether it is a bound and not a fit."""

    def seconds(self, items: int) -> float:
        """What a run of so many takes."""
        return self.a + self.b * items

    def run_s(self, weights: Sequence[float]) -> float:
        """What a run of members takes whose own times are `weights` times the usual."""
        return self.seconds(len(weights)) * sum(weights) / len(weights)


def fit(pairs: Sequence[tuple[int, float]]) -> BatchCurve | None:
    """The curve through (items, seconds) of requests; None where fewer than two sizes were measured.

    A run of k is seen by k requests, so the means by size are weighted by runs. Means and not medians: times
    of single items are skewed, and those of large runs, which are means themselves, hardly are. Neither a
    nor b is below 0.
    """
    by_size: dict[int, list[float]] = {}
    for items, seconds in pairs:
        by_size.setdefault(items, []).append(seconds)
    sizes = {k: times for k, times in by_size.items() if len(times) >= SIZE_ROWS_MIN}
    if len(sizes) < 2:
        return None
    k = np.array(sorted(sizes), dtype=np.float64)
    means = np.array([fmean(sizes[int(size)]) for size in k])
    runs = np.array([len(sizes[int(size)]) for size in k]) / k
    b, a = np.polyfit(k, means, 1, w=np.sqrt(runs))
    if b < 0:
        return BatchCurve(float(np.average(means, weights=runs)), 0.0)
    if a < 0:
        return BatchCurve(0.0, float((runs * k * means).sum() / (runs * k * k).sum()))
    return BatchCurve(float(a), float(b))


def bounds(alone_s: float) -> tuple[BatchCurve, BatchCurve]:
    """The most and the least that company can save, where only runs of one were measured."""
    return BatchCurve(alone_s, 0.0, assumed=True), BatchCurve(0.0, alone_s, assumed=True)
