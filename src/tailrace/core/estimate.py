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


class ServiceTime:
    """Seconds one run takes as a function of its cost, kept fresh.

    `prior_s` at `prior_cost` stands in until the first run (the warm-up's time is a good one);
    `weight` is the share of the newest run in the estimate.
    """

    def __init__(self, prior_s: float = 1.0, prior_cost: float = 1.0, weight: float = 0.2) -> None:
        self._prior = (prior_s, prior_cost)
        self._weight = weight
        self._seen = 0
        self._cost = self._time = self._cost2 = self._both = 0.0
        self._piece = prior_cost

    @property
    def seen(self) -> int:
        """Clean runs learned from."""
        return self._seen

    @property
    def typical_cost(self) -> float:
        """The cost of the usual piece of work, as seen lately."""
        return self._piece

    def learn(self, cost: float, seconds: float, items: int = 1) -> None:
        """Take in one clean run of `items` pieces: one that nobody cut short and that did not fail."""
        keep = 1.0 - max(self._weight, 1.0 / (self._seen + 1))
        add = 1.0 - keep
        self._piece = keep * self._piece + add * cost / items
        self._cost = keep * self._cost + add * cost
        self._time = keep * self._time + add * seconds
        self._cost2 = keep * self._cost2 + add * cost * cost
        self._both = keep * self._both + add * cost * seconds
        self._seen += 1

    def fit(self) -> tuple[float, float]:
        """The present (a, b) of seconds = a + b x cost; both at least 0.

        Where the costs seen hardly differ, a line cannot be told from one point: then time is taken
        as proportional to cost.
        """
        if not self._seen:
            return 0.0, self._prior[0] / self._prior[1]
        variance = self._cost2 - self._cost * self._cost
        if variance > 0.01 * self._cost2:
            b = (self._both - self._cost * self._time) / variance
            a = self._time - b * self._cost
            if a >= 0.0 and b >= 0.0:
                return a, b
        return 0.0, self._time / self._cost if self._cost > COST_FLOOR else 0.0

    def seconds(self, cost: float) -> float:
        """What a run of `cost` is expected to take."""
        a, b = self.fit()
        return a + b * cost

    def affords(self, seconds: float) -> float:
        """The cost of the largest run that is expected to end within `seconds`; may be negative."""
        a, b = self.fit()
        return (seconds - a) / b if b > 0.0 else inf


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
