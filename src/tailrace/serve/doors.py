"""Doors: admission + discipline + delivery over a lane, and the one way through them.

cache -> admission -> lane, for the doors that reply. The door also knows when those it refuses should
come back. It knows neither HTTP nor what a model is.
"""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tailrace.cache.port import Cache
from tailrace.core.admission import AllOf, LaneView
from tailrace.core.clock import Clock
from tailrace.core.errors import Infeasible, QueueTimeout, Rejected, TailraceError
from tailrace.core.events import CacheLookup, Refused
from tailrace.core.lane import Lane
from tailrace.core.returns import ReturnBook, Spread
from tailrace.core.work import Work

FINE_STEP_S = 0.01
"""The grid of retry-after-ms."""


@dataclass(slots=True)
class Door:
    """One way in. `seats` is how many may wait at it, for the page and for planning returns."""

    name: str
    lane: Lane
    admission: AllOf
    seats: int
    batch_key: str | None = None
    in_progress: int = 0
    by_second: ReturnBook = field(default_factory=lambda: ReturnBook(1.0))
    exactly: ReturnBook = field(default_factory=lambda: ReturnBook(FINE_STEP_S))
    late: Spread = field(default_factory=Spread)

    def refuse(self, error: TailraceError, view: LaneView) -> tuple[float, float] | None:
        """When who got `error` should return (whole seconds, exact seconds); None if it does not matter."""
        if not isinstance(error, Rejected | QueueTimeout):
            return None
        pace_s = view.pace_s or view.service_s / self.lane.slots
        if error.retry_after_s is not None:
            if not isinstance(error, Infeasible) or error.hopeless:
                return error.back_s
            back_s = self.late.book(view.now, error.retry_after_s, pace_s)
            return max(1.0, back_s), back_s
        places = self.seats + self.lane.slots
        in_line = view.waiting + view.running
        whole = self.by_second.book(view.now, in_line, places, pace_s)
        exact = self.exactly.book(view.now, in_line, places, pace_s)
        return whole, min(whole, exact)

    @contextmanager
    def telling_when(self) -> Iterator[None]:
        """Who is refused inside hears when to come back."""
        try:
            yield
        except TailraceError as error:
            error.back_s = error.back_s or self.refuse(error, self.lane.view())
            raise


class Pipeline:
    """The way of a request that is answered in the same exchange."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self.cache = cache
        self._clock = clock

    def known(self, door: str, key: Hashable, lane: Lane) -> Any | None:
        """The cached answer, if there is one."""
        found = self.cache.get(key)
        lane.events.emit(CacheLookup(door, found is not None))
        return found

    def admit(self, door: Door, work: Work) -> asyncio.Future[Any]:
        """Verdict and seat in one step; the future of the model's result.

        Closes the part `admit`, with the verdict.

        Raises:
            Rejected: by a policy or by the lane; it is counted.

        """
        try:
            try:
                latest_start = door.admission.admit(work, door.lane.view(work))
            finally:
                work.stamps.close("admit", self._clock.now())
            return door.lane.submit(work, latest_start)
        except Rejected as refusal:
            door.lane.events.emit(Refused(door.lane.name, door.name, refusal.code))
            raise
