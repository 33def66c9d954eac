"""One piece of work, the moments it passed, and what a running batch may ask of the lane.

Knows nothing of models, policies or HTTP. All times are seconds of one monotonic clock.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol


class Stamps:
    """The moments one piece of work passed, as a chain without gaps.

    Every stamp closes the part that began at the stamp before it, so the parts add up to the whole by
    construction and none is found by subtraction. A part that happens twice (a batch that is run again
    after a bad neighbour) adds up under its one name.
    """

    __slots__ = ("_last", "_parts", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self._last = start
        self._parts: dict[str, float] = {}

    def close(self, part: str, at: float) -> None:
        """Say that `part` ended at `at`; a moment before the last stamp counts as the last stamp."""
        took = at - self._last
        if took > 0.0:
            self._last = at
        else:
            took = 0.0
        self._parts[part] = self._parts.get(part, 0.0) + took

    def follow(self, other: "Stamps") -> None:
        """Append the parts of a chain that began where this one stands."""
        for part, seconds in other.parts().items():
            self.close(part, self._last + seconds)

    @property
    def last(self) -> float:
        """The moment of the latest stamp."""
        return self._last

    @property
    def total(self) -> float:
        """Seconds from the first stamp to the latest."""
        return self._last - self.start

    def parts(self) -> dict[str, float]:
        """Seconds by part, in the order in which the parts first happened."""
        return dict(self._parts)


def unfolded(stamps: Stamps, part: str, trail: Stamps) -> Stamps:
    """The chain with `part` taken apart as `trail` says; what it does not know of is `handover`."""
    made = Stamps(stamps.start)
    for name, seconds in stamps.parts().items():
        ends = made.last + seconds
        if name == part:
            made.follow(trail)
            made.close("handover", ends)
        else:
            made.close(name, ends)
    return made


@dataclass(slots=True, eq=False)
class Work:
    """What a caller wants done: the payload, what it costs, and until when an answer is of use."""

    payload: Any
    stamps: Stamps
    door: str = ""
    cost: float = 1.0
    batch_key: str | None = None
    """Only equal keys share a batch; None runs alone."""
    caller: str = ""
    """Who asks, for policies that count by caller."""
    yields: float = 0.0
    """How much service (in cost) it lets pass before it; the class of the work."""
    items: int = 1
    """Pieces a caller brought at once, where one piece stands for all at admission."""
    deadline: float = inf
    """The moment after which the answer is useless."""
    batch_size: int = field(default=0, init=False)
    """How many shared the run that answered; 0 until it started."""

    @property
    def bulk(self) -> bool:
        """Whether it lets other work pass."""
        return self.yields > 0


class Run(Protocol):
    """What a model may ask and tell while it runs one batch; safe to call from any thread."""

    def mark(self, part: str) -> None:
        """Say that `part` (tokenize, infer, post) of this run has just ended."""

    def wanted(self, index: int) -> bool:
        """Whether anybody still waits for item `index`; ask between sub-batches and skip what is not."""


class StagedRun(Run, Protocol):
    """A run whose model also says which part is under way."""

    def begin(self, part: str) -> None:
        """Say that `part` is under way, so that a run that is cut short is booked there."""


class ReadyRun(StagedRun, Protocol):
    """A run that lies ready for whichever of the model's threads is free next."""

    def claim(self) -> bool:
        """Whether it may begin, now, on the calling thread; False where it was taken back."""
