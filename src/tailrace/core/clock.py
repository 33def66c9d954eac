"""The one clock of the house: monotonic seconds, handed to whoever needs them.

Knows nothing of event loops: a clock is a constructor argument and readable from anywhere, any thread.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds since an arbitrary start."""

    def now(self) -> float:
        """The present moment."""


class MonotonicClock:
    """The machine's monotonic clock, the one that asyncio and uvloop schedule by."""

    def now(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()
