"""What goes into a replay and what comes out of it: requests to come, and what became of them.

Plain data, in seconds. Knows nothing of lanes and rows.
"""

from dataclasses import dataclass
from typing import Literal

End = Literal["ok", "refused", "timeout"]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to come."""

    at_s: float
    """Its intended start; in a closed loop how long its caller pauses before it."""
    before_s: float = 0.0
    """From there to the lane."""
    weight: float = 1.0
    """What it is to a run, in whatever `RunTime` counts."""
    after_s: float = 0.0
    """From the lane's answer to the parsed result."""
    elsewhere_s: float = 0.0
    """Waiting that no lane of ours causes: in somebody else's line."""
    known: bool = False
    """Whether its answer needs no run."""


@dataclass(slots=True)
class Stay:
    """What became of one request; seconds, over all its tries."""

    at_s: float = 0.0
    outcome: End = "ok"
    status: int | None = 200
    wall_s: float = 0.0
    before_s: float = 0.0
    queue_s: float = 0.0
    service_s: float = 0.0
    after_s: float = 0.0
    paused_s: float = 0.0
    """Between its tries."""
    batch: int = 0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay from its first arrival to its last answer."""

    stays: list[Stay]
    busy_s: float
    """Seconds of slots in use."""
    runs: int
    until_s: float
    """When everything was over."""
