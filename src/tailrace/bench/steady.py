"""Whether a run has settled: in each of its halves, do the times still move in one direction.

A falling first half is more warm-up, and is cut; a rising second half is a backlog that grows, and makes
the run invalid. Knows numbers only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCKS = 12
"""Medians of so many stretches of time stand for a half: one slow answer moves none of them."""
ROWS_MIN = 10 * BLOCKS
"""Fewer rows than this in a half say nothing of a slope."""
T_CRITICAL = 3.169
"""Student's t with BLOCKS - 2 degrees: one half in a hundred without a slope is taken for one with."""
MOVE_MIN = 0.10
"""A slope that moves the median by less than this share over its half is of no interest."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What the test found."""

    from_s: float
    """Rows before this moment still belong to the warm-up."""
    steady: bool | None
    """None: too few rows to tell."""
    growth: float = 0.0
    """By which share the median moved over the second half."""


def settled(at_s: "np.ndarray[Any, Any]", wall_ms: "np.ndarray[Any, Any]") -> Settled:
    """Test requests by their intended start, in any order."""
    order = np.argsort(at_s)
    at, wall = np.asarray(at_s, float)[order], np.asarray(wall_ms, float)[order]
    start = float(at[0]) if len(at) else 0.0
    if len(at) < 2 * ROWS_MIN:
        return Settled(start, None)
    middle = len(at) // 2
    begin = 0
    if _move(at[:middle], wall[:middle]) < -MOVE_MIN:
        begin = middle // 2  # the first quarter goes; what falls longer than that is not steady
        if _move(at[begin:], wall[begin:]) < -MOVE_MIN:
            return Settled(float(at[begin]), False, _move(at[begin:], wall[begin:]))
    growth = _move(at[middle:], wall[middle:])
    return Settled(float(at[begin]) if begin else start, growth <= MOVE_MIN, growth)


def _move(at: "np.ndarray[Any, Any]", wall: "np.ndarray[Any, Any]") -> float:
    """The median's move over the span, as a share of it; 0 where chance may have done it.

    Least squares through the medians of BLOCKS stretches; Student's t of the slope.
    """
    if len(at) < ROWS_MIN:
        return 0.0
    medians = np.array([np.median(piece) for piece in np.array_split(wall, BLOCKS)])
    steps = np.arange(BLOCKS) - (BLOCKS - 1) / 2
    slope = float(steps @ medians / (steps @ steps))
    left = medians - medians.mean() - slope * steps
    error = float(np.sqrt(left @ left / (BLOCKS - 2) / (steps @ steps)))
    if abs(slope) <= T_CRITICAL * error:
        return 0.0
    middle = float(np.median(medians))
    return slope * (BLOCKS - 1) / middle if middle else 0.0
