"""What a run would look like after some levers: replays of the real lane, as rows like those measured.

Every replication draws its requests anew from the recorded ones (and those from themselves, so that a short
run is less sure than a long one), in blocks, because neighbours are alike. Statistics are somebody else's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from tailrace.simulate.curve import BatchCurve
from tailrace.simulate.levers import Levers
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.pulled import Bound, Brought, brought
from tailrace.simulate.recorded import Recorded
from tailrace.simulate.replay import replay
from tailrace.simulate.rows import as_row
from tailrace.simulate.visits import Visit
from tailrace.wire.record import Row

Ints = NDArray[np.int64]

RANGE_USE = 0.90
"""From this use on a small error of the rate is a large one of the queue: only ranges are told."""
REPLICATIONS = 40
REPLICATIONS_MIN = 12
SHAPED_MIN = 3
"""The same where the arrivals have a shape that cannot be cut short."""
REQUESTS_MAX = 40_000
"""Requests replayed for one prediction, over all its replications: some seconds."""
WARM_UP = 0.1
"""Requests replayed before those that count, so that they do not find an empty line; by share."""
WARM_UP_MIN = 30
NO_LINE = 10_000
"""Slots of a lane in which nobody waits."""


@dataclass(frozen=True, slots=True)
class Replication:
    """One run as it might have been."""

    rows: list[Row]
    bound: Bound
    """Which end of what is not known it takes."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A prediction before it is replayed."""

    run: Recorded
    levers: Levers
    plan: LanePlan
    callers: CallerPlan
    others: bool
    """Whether the line is filled by others too."""
    curves: Mapping[Bound, BatchCurve]
    turnaround_s: float
    doubts: tuple[str, ...]
    caveats: tuple[str, ...]
    made: dict[Bound, list[Brought]] = field(default_factory=dict, repr=False, compare=False)
    """What each recorded request brings, by bound, once it was asked for."""

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What has to be replayed: one case, or both ends of what is not known."""
        return (0,) if not self.doubts else (-1, 1)

    @property
    def offered_per_s(self) -> float | None:
        """Requests a second; None in a closed loop, where answers make the rate."""
        arrivals = self.run.arrivals
        if arrivals.closed is not None:
            return None
        starts = arrivals.starts_s
        span = starts[-1] - starts[0] if len(starts) > 1 else 0.0
        rate = arrivals.rate or ((len(starts) - 1) / span if span > 0 else None)
        return None if rate is None else rate * (self.levers.rate or 1.0)

    def capacity_per_s(self, bound: Bound = 0) -> float | None:
        """Requests a second that the lane can answer in the long run; None where others share it."""
        if self._lineless:
            return None
        requests = self._all_brought(bound)
        curve = self.curves[bound]
        items = self.plan.batch.items_max if self.plan.shares else 1
        weights = [one.weight for one in requests if not one.known]
        asked = len(weights) / len(requests) * (1.0 - (self.levers.cache or 0.0))
        run_s = curve.seconds(items) * fmean(weights or [0.0]) + self.turnaround_s
        return items * self.plan.slots / run_s / asked if run_s > 0 and asked > 0 else None

    @property
    def use(self) -> float | None:
        """The highest share of the lane's time that is asked for, over what is not known."""
        offered = self.offered_per_s
        uses = [
            offered / capacity
            for bound in self.bounds
            if offered is not None and (capacity := self.capacity_per_s(bound)) is not None
        ]
        return max(uses, default=None)

    @property
    def replications(self) -> int:
        """How many there should be of each bound: fewer of long runs, so that it takes seconds."""
        most = REQUESTS_MAX // (self.requests * len(self.bounds))
        least = SHAPED_MIN if self.run.arrivals.fixed else REPLICATIONS_MIN
        return max(least, min(REPLICATIONS, most))

    @property
    def requests(self) -> int:
        """How many requests a replication counts: those of the run, or of a very long one a part."""
        n = self.run.n
        return n if self.run.arrivals.fixed else min(n, REQUESTS_MAX // REPLICATIONS_MIN)

    @property
    def _lineless(self) -> bool:
        return self.others and not self.levers.dedicated

    def replicate(self, seed: int, bound: Bound = 0, *, paired: bool = False) -> Replication:
        """One replay; `paired` keeps the recorded arrivals and requests in their order."""
        random = np.random.default_rng((seed, 7))
        trips = self.run.trips
        shaped = paired or self.run.arrivals.fixed
        warm = 0 if shaped else max(WARM_UP_MIN, round(self.requests * WARM_UP))
        count = len(trips) if paired else self.requests + warm
        chosen = np.arange(count) if paired else _drawn(random, len(trips), count)
        every = self._all_brought(bound)
        requests = [every[i] for i in chosen]
        starts = self._starts(random, count, chosen, paired=paired)
        known = self._known(random, count)
        visits = [
            Visit(
                at_s=float(at),
                before_s=max(0.0, one.before_s),
                weight=one.weight,
                after_s=one.after_s(self.turnaround_s),
                elsewhere_s=max(0.0, one.queue) / 1000,
                known=one.known or bool(hit),
            )
            for at, one, hit in zip(starts, requests, known, strict=True)
        ]
        plan = replace(self.plan, slots=NO_LINE) if self._lineless else self.plan
        replayed = replay(
            visits,
            plan,
            self.curves[bound].run_s,
            callers=self.callers,
            turnaround_s=self.turnaround_s,
            closed=self.run.arrivals.closed,
        )
        rows = [
            as_row(stay, visit, one, warm=number < warm)
            for number, (stay, visit, one) in enumerate(
                zip(replayed.stays, visits, requests, strict=True)
            )
        ]
        return Replication(rows, bound)

    def _all_brought(self, bound: Bound) -> list[Brought]:
        if bound not in self.made:
            curve = next(iter(self.curves.values()))  # where runs were measured, bounds agree
            usual_ms = {
                (trip.batch, trip.items): curve.seconds(trip.batch)
                / curve.seconds(trip.items)
                * curve.seconds(1)
                * 1000
                for trip in self.run.trips
            }
            self.made[bound] = [
                brought(
                    trip,
                    self.run,
                    self.levers,
                    usual_ms[trip.batch, trip.items],
                    others=self.others,
                    bound=bound,
                )
                for trip in self.run.trips
            ]
        return self.made[bound]

    def _starts(
        self, random: np.random.Generator, count: int, chosen: Ints, *, paired: bool
    ) -> NDArray[np.float64]:
        arrivals, factor = self.run.arrivals, self.levers.rate or 1.0
        if arrivals.closed is not None:
            return np.full(count, arrivals.pause_s)
        if paired:
            first = self.run.trips[0].row.at_s
            return np.array([self.run.trips[i].row.at_s - first for i in chosen]) / factor
        if arrivals.fixed:
            return np.array(arrivals.starts_s) / factor
        if arrivals.rate is not None:
            return np.asarray(np.cumsum(random.exponential(1 / arrivals.rate / factor, count)))
        gaps = np.diff(np.array(arrivals.starts_s))
        return np.asarray(np.cumsum(gaps[_drawn(random, len(gaps), count)]) / factor)

    def _known(self, random: np.random.Generator, count: int) -> NDArray[np.bool_]:
        share = self.levers.cache or 0.0
        return np.asarray(random.random(count) < share)


def _drawn(random: np.random.Generator, have: int, count: int) -> Ints:
    """Indices of `count` of `have` things, drawn twice in blocks: the sample, and from the sample."""
    length = max(1, round(have ** (1 / 3)))
    sample = _blocks(random, have, have, length)
    return np.asarray(sample[_blocks(random, have, count, length)])


def _blocks(random: np.random.Generator, have: int, count: int, length: int) -> Ints:
    starts = random.integers(0, have, -(-count // length))
    spread = (starts[:, None] + np.arange(length)[None, :]) % have
    return np.asarray(spread.ravel()[:count])
