"""Refuse new work while the model elsewhere has asked for a pause that is too long to wait out."""

from math import inf

from tailrace.core.admission import LaneView
from tailrace.core.errors import Rejected
from tailrace.core.events import Settled
from tailrace.core.work import Work


class UpstreamPaused(Rejected):
    """The upstream asked for a pause."""

    code = "upstream-paused"


class UpstreamPause:
    """While the lane pauses for longer than `wait_s`, new work is told when the pause ends."""

    def __init__(self, wait_s: float = 1.0) -> None:
        self.wait_s = wait_s

    def admit(self, work: Work, view: LaneView) -> float:  # noqa: ARG002 - the policy's shape
        """Any start will do; raises UpstreamPaused."""
        if view.paused_s > self.wait_s:
            raise UpstreamPaused(
                f"The upstream asked for a pause; it ends in {view.paused_s:.1f} s.",
                retry_after_s=view.paused_s,
            )
        return inf

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
