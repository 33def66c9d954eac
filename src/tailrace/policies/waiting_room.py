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

    def admit(self, work: Work, view: LaneView) -> float:
        """Any start will do; raises LaneFull where not every item finds a seat or a slot."""
        taken = view.waiting + work.items - view.free
        if taken > self.seats:
            if work.items == 1:
                raise LaneFull(f"All {self.seats} seats are taken.")
            left = max(0, self.seats - view.waiting)
            raise LaneFull(f"{left} of {self.seats} seats are free; this needs {work.items}.")
        return inf

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
