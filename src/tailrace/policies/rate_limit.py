"""An allowance for each caller: a token bucket by key."""

from collections import OrderedDict
from math import inf

from tailrace.core.admission import LaneView
from tailrace.core.errors import RateLimited
from tailrace.core.events import Settled
from tailrace.core.work import Work

CALLER_CHARS_MAX = 200
"""Of a longer name only the beginning counts."""


class RateLimit:
    """At most `per_second` asks a second for each caller, `burst` at once.

    Remembers the `callers_max` callers seen last; one that was forgotten starts with a full bucket.
    Asking counts, admitted or not.
    """

    def __init__(self, per_second: float, burst: int, callers_max: int = 10_000) -> None:
        self.per_second = per_second
        self.burst = burst
        self.callers_max = callers_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, work: Work, view: LaneView) -> float:
        """Any start will do; raises RateLimited with the time until the next ask is allowed."""
        caller = work.caller[:CALLER_CHARS_MAX]
        tokens, at = self._buckets.pop(caller, (float(self.burst), view.now))
        tokens = min(float(self.burst), tokens + (view.now - at) * self.per_second)
        allowed = tokens >= 1.0
        self._buckets[caller] = (tokens - 1.0 if allowed else tokens, view.now)
        while len(self._buckets) > self.callers_max:
            self._buckets.popitem(last=False)
        if not allowed:
            raise RateLimited(
                f"This caller may ask {self.per_second:g} times a second, {self.burst} at once.",
                retry_after_s=(1.0 - tokens) / self.per_second,
            )
        return inf

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
