"""What a watch needs of the world: something that measures, and a clock. Protocols and data only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from tailrace.latency.runs import Summary


@dataclass(frozen=True, slots=True)
class Taken:
    """What one case of a round came to: a run that can be believed, or a gap."""

    case: str
    folder: Path | None = None
    """The run's folder; None where nothing was measured at all."""
    summary: Summary | None = None
    """None for a gap."""
    gap: str | None = None
    """Why there are no figures, in one sentence."""


class Measuring(Protocol):
    """Measures every case once."""

    async def measure(self, root: Path, began: datetime) -> Sequence[Taken]:
        """Keep runs below `root`; who does not answer is a gap, nothing is raised for it."""


class Clock(Protocol):
    """The time of day, and waiting."""

    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
