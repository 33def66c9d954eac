"""How long the model takes, and what follows: when waiting work would start.

Service time is fitted as a + b x cost by exponentially weighted least squares, from clean runs only;
the start is found by list scheduling, as if the lane were played forward.
"""

import heapq
from collections.abc import Iterable, Sequence
from math import inf

RESIDUAL_FLOOR = 0.25
"""A run that outlasts its estimate is expected to need this share of it more."""
COST_FLOOR = 1e-6
"""Less than this is no cost at all: nothing can be proportional to it."""
QUICK, PATIENT = 0.2, 0.05
"""The share of the newest run in two looks at the model, of which the slower counts."""


class _Look:
    """One line a + b x cost through runs, of which the newest has at least the share `weight`."""

    __slots__ = ("_both", "_cost", "_cost2", "_seen", "_time", "_weight", "a", "b")

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self._seen = 0
        self._cost = self._time = self._cost2 = self._both = 0.0
        self.a = self.b = 0.0

    def learn(self, cost: float, seconds: float) -> None:
        self._seen += 1
        add = max(self._weight, 1.0 / self._seen)
        keep = 1.0 - add
        self._cost = keep * self._cost + add * cost
        self._time = keep * self._time + add * seconds
        self._cost2 = keep * self._cost2 + add * cost * cost
        self._both = keep * self._both + add * cost * seconds
        self.a, self.b = self._fit()

    def _fit(self) -> tuple[float, float]:
        """(a, b), both at least 0.

        Where the costs seen hardly differ, a line cannot be told from one point: then time is taken
        as proportional to cost.
        """
        variance = self._cost2 - self._cost * self._cost
        if variance > 0.01 * self._cost2:
            b = (self._both - self._cost * self._time) / variance
            a = self._time - b * self._cost
            if a >= 0.0 and b >= 0.0:
                return a, b
        return 0.0, self._time / self._cost if self._cost > COST_FLOOR else 0.0


class ServiceTime:
    """Seconds one run takes as a function of its cost, kept fresh.

    `prior_s` at `prior_cost` stands in until the first run (the warm-up's time is a good one). A quick
    and a patient look learn from the same runs, and the slower counts: a line is filled as far as the
    most hopeful moment allows, so an estimate that swings lets in more than can be served in time.
    """

    def __init__(self, prior_s: float = 1.0, prior_cost: float = 1.0) -> None:
        self.seen = 0
        """Clean runs learned from."""
        self.typical_cost = prior_cost
        """The cost of the usual piece of work, as seen lately."""
        prior = _Look(1.0)
        prior.b = prior_s / prior_cost
        self._looks = (prior, prior)

    def learn(self, cost: float, seconds: float, items: int = 1) -> None:
        """Take in one clean run of `items` pieces: one that nobody cut short and that did not fail."""
        if not self.seen:
            self._looks = (_Look(QUICK), _Look(PATIENT))
        for look in self._looks:
            look.learn(cost, seconds)
        self.seen += 1
        self.typical_cost += max(QUICK, 1.0 / self.seen) * (cost / items - self.typical_cost)

    def seconds(self, cost: float) -> float:
        """What a run of `cost` is expected to take."""
        quick, patient = self._looks
        return max(quick.a + quick.b * cost, patient.a + patient.b * cost)

    def affords(self, seconds: float) -> float:
        """The cost of the largest run that is expected to end within `seconds`; may be negative."""
        return min((seconds - look.a) / look.b if look.b > 0.0 else inf for look in self._looks)


def residual_s(expected_s: float, elapsed_s: float) -> float:
    """What a run that began `elapsed_s` ago is expected to need still."""
    return max(expected_s - elapsed_s, RESIDUAL_FLOOR * expected_s)


def start_in_s(free_in_s: Sequence[float], ahead_s: Iterable[float]) -> float:
    """Seconds until new work would start: list scheduling.

    `free_in_s` holds, for every slot, when it becomes free; `ahead_s` the service time of each run
    that goes first, in order.
    """
    slots = list(free_in_s)
    heapq.heapify(slots)
    for service in ahead_s:
        heapq.heapreplace(slots, slots[0] + service)
    return slots[0]
