"""A range that holds the true figure with a stated confidence. Knows nothing of how it was found."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """From low to high; an end that the data cannot bound is infinite."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def to_json(self) -> list[float | None]:
        """Both ends; JSON has no infinity, so an open end is null."""
        return [end if math.isfinite(end) else None for end in (self.low, self.high)]


@dataclass(frozen=True, slots=True)
class Change:
    """By how much a figure differs between two runs (second minus first), and how sure that is."""

    value: float
    interval: Interval

    @property
    def sure(self) -> bool:
        """Whether the interval leaves no room for "nothing changed"."""
        return 0.0 not in self.interval

    def to_json(self) -> dict[str, float | list[float | None] | None]:
        """The change and its interval; null where one side is not known to be finite."""
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "interval": self.interval.to_json()}
