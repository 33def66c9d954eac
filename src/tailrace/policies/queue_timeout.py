"""The longest anybody waits for a turn."""

from tailrace.core.admission import LaneView
from tailrace.core.events import Settled
from tailrace.core.work import Work


class QueueTimeoutPolicy:
    """Work that has not started `seconds` after admission is answered then, by the lane."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def admit(self, work: Work, view: LaneView) -> float:  # noqa: ARG002 - the policy's shape
        """The latest start: now and `seconds`."""
        return view.now + self.seconds

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
