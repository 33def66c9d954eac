"""Refuse at the door what cannot be ready in time anyway."""

from math import inf, isinf

from tailrace.core.admission import LaneView
from tailrace.core.errors import Infeasible
from tailrace.core.events import Settled
from tailrace.core.work import Work

HOPELESS_S = 5.0
"""The pause for a caller whose deadline is shorter than a run: the run may be shorter another time."""


class DeadlineFeasible:
    """Work with a deadline must be expected to finish before it.

    `slack` widens the estimate: 1.2 refuses what would be late if everything took a fifth longer.
    """

    def __init__(self, slack: float = 1.0) -> None:
        self.slack = slack

    def admit(self, work: Work, view: LaneView) -> float:
        """The latest start that still leaves time for the run; raises Infeasible."""
        return self._latest_start(work, view, 0.0)

    def foresee(self, work: Work, view: LaneView, doubt_s: float) -> None:
        """The same by an estimate: late is late, whatever the work costs to the token."""
        self._latest_start(work, view, doubt_s)

    def _latest_start(self, work: Work, view: LaneView, doubt_s: float) -> float:
        if isinf(work.deadline):
            return inf
        service_s = view.service_s * self.slack
        ready_in_s = view.start_in_s * self.slack + service_s
        allowed_s = work.deadline - view.now
        if ready_in_s - doubt_s > allowed_s:
            alone = "" if service_s <= allowed_s else " Even with nobody ahead it would be late."
            # One who can never be in time has no reason to hurry back.
            back_s = ready_in_s - allowed_s if service_s <= allowed_s else ready_in_s + HOPELESS_S
            refusal = Infeasible(
                f"The answer is expected in {ready_in_s * 1000:.0f} ms; the deadline is in "
                f"{max(0.0, allowed_s) * 1000:.0f} ms.{alone}",
                retry_after_s=back_s,
            )
            refusal.hopeless = bool(alone)
            raise refusal
        return work.deadline - service_s

    def observe(self, settled: Settled) -> None:
        """Nothing to learn: the lane's estimate is the memory."""
