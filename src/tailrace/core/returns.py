"""When those who were refused should come back, so that they find room when they do.

Telling everybody the same second only moves the crowd. The book remembers which returns it has handed
out and spreads the next ones to where the line, drained at the measured pace, has a place left.
"""

from math import ceil

PACE_MARGIN = 1.15
"""Plan as if the model were this much slower than measured: an early return is refused again."""
SPREAD_S = 15.0
"""Late refusals are spread over so much at most: in a long overload most of the refused never return."""
HORIZON_S = 3600.0
"""No return is booked further ahead."""


class ReturnBook:
    """Hands out return times on a grid of `step_s` seconds (1 for Retry-After, finer for retry-after-ms)."""

    def __init__(self, step_s: float = 1.0) -> None:
        self._step_s = step_s
        self._latest = 0.0
        self._line = 0.0

    def book(self, now: float, in_line: int, places: int, pace_s: float) -> float:
        """Seconds after which the caller should return; a multiple of the step, at least one step.

        `in_line` counts who waits or runs now, `places` how many may (seats and slots), `pace_s` is the
        time in which the lane finishes one.
        """
        pace = max(pace_s, 1e-6) * PACE_MARGIN
        steps = max(1, ceil((self._latest - now) / self._step_s - 1e-9))
        while True:
            ahead = steps * self._step_s
            line = self._line_at(now + ahead, now, in_line, pace)
            if line + 1 <= places or ahead >= HORIZON_S:
                break
            steps += max(1, ceil((line + 1 - places) * pace / self._step_s))
        self._latest, self._line = now + ahead, line + 1
        return min(ahead, HORIZON_S)

    def _line_at(self, moment: float, now: float, in_line: int, pace: float) -> float:
        """How long the line is expected to be: who is here now, and who was told to come by then."""
        here = max(0.0, in_line - (moment - now) / pace)
        if self._latest <= now:
            return here
        return max(here, self._line - (moment - self._latest) / pace)


class Spread:
    """Spreads returns that are each possible from some moment on: one at a time, at the lane's pace."""

    def __init__(self) -> None:
        self._next = 0.0

    def book(self, now: float, least_s: float, pace_s: float) -> float:
        """Seconds after which the caller should return: `least_s`, or when its turn comes after others'."""
        least_s *= PACE_MARGIN
        moment = max(now + least_s, min(self._next, now + least_s + SPREAD_S))
        self._next = moment + pace_s * PACE_MARGIN
        return moment - now
