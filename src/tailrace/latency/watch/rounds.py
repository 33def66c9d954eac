"""The rounds of a watch: measure, keep, judge, tell, wait.

Waits are jittered, so that watches which were started together drift apart. Knows neither what is
measured nor where events go.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tailrace.latency.bootstrap import RESAMPLES
from tailrace.latency.watch.expiry import answer, expired, point_of
from tailrace.latency.watch.history import History, Point
from tailrace.latency.watch.port import Clock, Measuring, Taken

JITTER = 0.1
"""By which share of the interval a wait is shorter or longer."""
RUNS_MAX = 500
"""The newest runs of each case whose rows are kept; of older ones the history remains."""


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Event:
    """What one case of a round came to."""

    kind: str
    """measured, down, or expired; expired wins."""
    watch: str
    point: Point
    news: bool
    """Whether somebody should be told: expired, down since now, or up again."""

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        body = self.point.model_dump(exclude_none=True)
        moment = datetime.fromtimestamp(self.point.at, UTC).isoformat(timespec="seconds")
        return {"kind": self.kind, "watch": self.watch, "time": moment, **body}


@dataclass
class Watch:
    """Measures again and again what it was given."""

    name: str
    history: History
    measuring: Measuring
    tell: Callable[[Event], Awaitable[None]]
    clock: Clock = field(default_factory=SystemClock)
    every_s: float = 900.0
    chance: random.Random = field(default_factory=random.Random)
    runs_max: int = RUNS_MAX
    resamples: int = RESAMPLES

    async def run(self, times: int | None = None) -> None:
        """So many rounds, or until it is cancelled."""
        meant = self.clock.now()
        done = 0
        while True:
            await self.round()
            done += 1
            if times is not None and done >= times:
                return
            meant += self.every_s * self.chance.uniform(1 - JITTER, 1 + JITTER)
            now = self.clock.now()
            meant = max(
                meant, now
            )  # a round longer than the interval: what was missed is not made up
            await self.clock.sleep(meant - now)

    async def round(self) -> list[Event]:
        """Measure every case once, keep it, judge it, and tell."""
        began = self.clock.now()
        moment = datetime.fromtimestamp(began, UTC)
        events = []
        for taken in await self.measuring.measure(self.history.folder, moment):
            event = self._judged(began, taken)
            events.append(event)
            await self.tell(event)
        return events

    def _judged(self, at: float, taken: Taken) -> Event:
        earlier = self.history.of(taken.case)
        folder = self.history.folder
        if taken.summary is None or taken.folder is None:
            point = Point(at=at, case=taken.case, gap=taken.gap or "nothing was measured")
        else:
            point = point_of(at, taken.case, str(taken.folder.relative_to(folder)), taken.summary)
        why = expired(earlier, point, folder, resamples=self.resamples)
        point = point.model_copy(update={"expired": tuple(why)})
        self.history.append(point)
        self._take_away_old(self.history.of(taken.case))
        was_down = bool(earlier) and earlier[-1].gap is not None
        is_down = point.gap is not None
        kind = "expired" if why else "down" if is_down else "measured"
        return Event(kind, self.name, point, news=bool(why) or was_down != is_down)

    def _take_away_old(self, points: Sequence[Point]) -> None:
        """Rows of old runs, but for those of the answer in force."""
        in_force = answer(points)
        kept = None if in_force is None else in_force.run
        runs = [point.run for point in points if point.run is not None]
        for run in runs[: -self.runs_max][-2 * self.runs_max :]:
            if run != kept and (self.history.folder / run / "summary.json").exists():
                shutil.rmtree(self.history.folder / run)
