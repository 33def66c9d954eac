"""Change points in a history: where a series went to another level, and whether that may be chance.

ruptures finds the place (least squares, one split); whether it counts is a t-test over the two segments,
corrected for every place and every series that was looked at, and a rank test beside it, so that a spike
or two are no change. Knows series of numbers only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

POINTS_MIN = 10
"""With fewer points of a series nothing is said."""
SEGMENT_MIN = 3
"""Points on either side of a change: one odd run is no change."""
WINDOW_MAX = 60
"""The latest points that are looked at."""
CHANCE = 0.001
"""How probable a change by chance may be, over all places and series of one look."""
RANK_CHANCE = 0.02
"""The same of the rank test at the place that was found."""
RELATIVE_MIN = 0.10
"""A smaller change of a time is of no use to anybody."""
SHARE_MIN = 0.05
"""Nor one of a share, or one that is a smaller share of the whole."""


class NoRuptures(RuntimeError):
    """The extra that finds change points is not installed."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One series went to another level."""

    series: str
    index: int
    """The first point of the new level."""
    before: float
    after: float
    """Medians of the two segments."""
    p: float
    """Corrected."""


def need_ruptures() -> None:
    """Raise NoRuptures where the extra is missing."""
    try:
        import ruptures  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise NoRuptures(
            "change points need ruptures: pip install 'tailrace[watch]', and try again"
        ) from None


def split(values: Sequence[float]) -> tuple[int, float]:
    """Where two levels fit best, and the p-value of their difference there, not corrected.

    1.0 where the values are all the same, or where the ranks do not bear it out.
    """
    from ruptures import Binseg  # noqa: PLC0415 - an extra
    from scipy.stats import mannwhitneyu, ttest_ind  # noqa: PLC0415 - comes with it

    found = np.asarray(values, dtype=np.float64)
    if np.ptp(found) <= 1e-9 * max(1.0, float(np.abs(found).max())):
        return SEGMENT_MIN, 1.0
    place = int(Binseg(model="l2", min_size=SEGMENT_MIN, jump=1).fit(found).predict(n_bkps=1)[0])
    before, after = found[:place], found[place:]
    noiseless = np.ptp(before) == 0.0 and np.ptp(after) == 0.0
    p = 0.0 if noiseless else float(ttest_ind(before, after).pvalue)
    if p > CHANCE or mannwhitneyu(before, after).pvalue > RANK_CHANCE:
        return place, 1.0
    return place, p


def shifts(
    series: Mapping[str, Sequence[float]], whole: float, shares: frozenset[str]
) -> list[Shift]:
    """The series that changed, surest first.

    `whole` is the median of the total in milliseconds; the names in `shares` are shares, 0..1, the others are
    milliseconds.
    """
    looked = {
        name: np.asarray(values[-WINDOW_MAX:], dtype=np.float64)
        for name, values in series.items()
        if len(values) >= POINTS_MIN
    }
    found = []
    for name, values in looked.items():
        timed = name not in shares and float(values.min()) > 0
        index, p = split(np.log(values).tolist() if timed else values.tolist())
        places = len(values) - 2 * SEGMENT_MIN + 1
        corrected = min(1.0, p * places * len(looked))
        before, after = float(np.median(values[:index])), float(np.median(values[index:]))
        if corrected <= CHANCE and _matters(before, after, whole, share=name in shares):
            at = index + len(series[name]) - len(values)
            found.append(Shift(name, at, before, after, corrected))
    return sorted(found, key=lambda one: one.p)


def _matters(before: float, after: float, whole: float, *, share: bool) -> bool:
    change = abs(after - before)
    if share:
        return change >= SHARE_MIN
    return change >= RELATIVE_MIN * abs(before) and change >= SHARE_MIN * math.fabs(whole)
