"""A bounded waiting room: who finds every seat taken is told so at once."""

from math import inf

from tailrace.core.admission import LaneView
from tailrace.core.errors import LaneFull
from tailrace.core.events import Settled
from tailrace.core.work import Work


class WaitingRoom:
    """At most `seats` wait. Work that finds a free slot needs no seat."""

    def __init__(self, seats: int) -> None:
        self.seats = seats

    def admit(self, work: Work, view: LaneView) -> float:  # noqa: ARG002 - the policy's shape
        """Any start will do; raises LaneFull where no seat and no slot is free."""
        if view.free <= 0 and view.waiting >= self.seats:
            raise LaneFull(f"All {self.seats} seats are taken.")
        return inf

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
