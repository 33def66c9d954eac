"""What the lane keeps for each piece of work inside it, and for each batch on the model.

Bookkeeping only: the lane decides. `Batch` is also the `Run` that the model's threads may read.
"""

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from math import inf
from typing import Any

from tailrace.core.clock import Clock
from tailrace.core.work import Work


class Seat:
    """A piece of work inside the lane, and the future its caller waits on."""

    __slots__ = ("batch", "context", "future", "latest_start", "settled", "timer", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any], latest_start: float = inf) -> None:
        self.work = work
        self.future = future
        self.latest_start = latest_start
        self.batch: Batch | None = None
        self.settled = False
        self.timer: asyncio.TimerHandle | None = None
        self.context = copy_context()
        """What was said of whoever asked."""

    @property
    def boarded(self) -> bool:
        """Whether it has a place in a batch."""
        return self.batch is not None

    def stop_timer(self) -> None:
        """Forget the moment at which the lane meant to answer by itself."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Batch:
    """The members of one slot, from the moment it opens until the model lets go."""

    __slots__ = (
        "_asked",
        "_begin_by",
        "_clock",
        "_free",
        "closes_at",
        "doing",
        "expected_s",
        "failed",
        "marks",
        "members",
        "overload",
        "released",
        "started_at",
        "task",
        "timer",
    )

    def __init__(self, clock: Clock, closes_at: float) -> None:
        self._clock = clock
        self.closes_at = closes_at
        self.failed = False
        """Whether the model raised, or was given up; a caller who left or a bad item is not its fault."""
        self.overload = False
        """Whether it failed because the model was asked for too much at once."""
        self.released = False
        """Whether its slot was given back."""
        self._asked: Sequence[Seat] = ()
        self._begin_by = inf
        self._free: list[None] = []
        self.members: list[Seat] = []
        self.started_at: float | None = None
        self.expected_s = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.marks: list[tuple[str, float]] = []
        self.doing = "infer"
        """The part under way; what a run that is cut short is booked under."""
        self.task: asyncio.Task[None] | None = None
        """The run itself, once it began."""

    @property
    def gathering(self) -> bool:
        """Whether the batch is open and not yet on the model."""
        return self.started_at is None

    def works(self) -> list[Work]:
        """The members' work, in order of arrival."""
        return [seat.work for seat in self.members]

    def ask(self, members: Sequence[Seat]) -> "Batch":
        """This batch as the `Run` in which item `i` is `members[i]`."""
        self._asked = members
        return self

    def mark(self, part: str) -> None:
        """Say that `part` of the run has just ended."""
        self.marks.append((part, self._clock.now()))

    def begin(self, part: str) -> None:
        """Say that `part` of the run is under way."""
        self.doing = part

    def given_up(self) -> bool:
        """Whether the run goes on and nobody waits for any of it."""
        return self.started_at is not None and all(seat.settled for seat in self.members)

    def wanted(self, index: int) -> bool:
        """Whether anybody still waits for item `index` of the run."""
        return not self._asked[index].future.done()

    def lay(self) -> None:
        """Let the model begin this batch by itself, as long as none of its members is late."""
        self._begin_by = min(seat.latest_start for seat in self.members)
        self._free = [None]

    def claim(self) -> bool:
        """Whether the model may begin this batch, which it does now; from any thread."""
        now = self._clock.now()
        if now > self._begin_by:
            return False
        self.started_at = now  # before it is taken: who fails to take it back reads it
        return self.recall()

    def recall(self) -> bool:
        """Take the batch back; False where the model has begun it. Of the two only one ever wins."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    @property
    def claimed(self) -> bool:
        """Whether it was laid ready and taken."""
        return not self._free

    def stop_timer(self) -> None:
        """Forget the end of the window, or of the longest run allowed."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
