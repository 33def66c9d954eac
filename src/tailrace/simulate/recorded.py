"""A measured run as a replay needs it: when requests came, what each brought, and what is not known.

Refuses a run from which no honest prediction can come. Knows rows, and nothing of how they are kept.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean, median

from tailrace.wire.record import Row

BEFORE = ("sched", "pool", "dns", "connect", "tls", "send")
"""Parts that end before the request is under way to the server."""
SERVICE = ("tokenize", "prefill", "infer", "think", "generate")
"""Parts that keep the model busy."""
AFTER = ("transfer", "client")
"""Parts that begin when the answer does."""

ROWS_MIN = 20
"""Answered requests without which nothing is predicted."""
EDGE_SHARE = 0.1
CUT_OFF_SHARE = 0.01
"""The share of requests that may have been cut off: their times are not known."""
UNTOLD_SHARE = 0.10
"""The share of the whole that may be without a name before the model's time counts as unknown."""


class CannotPredict(ValueError):
    """The run does not hold what a prediction needs: what, in one line."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How the requests of the run came."""

    starts_s: tuple[float, ...] = ()
    """The intended starts, from the first on."""
    rate: float | None = None
    """Of a Poisson stream, where its maker told."""
    closed: int | None = None
    """So many callers, each asking when it has its answer; None for an open loop."""
    pause_s: float = 0.0
    """Of such a caller between two requests."""
    fixed: bool = False
    """Whether the starts are a shape that another run would have as well: a staircase, a burst, a trace."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What one answered request brought, in milliseconds."""

    row: Row
    before: float
    net: float
    queue: float
    service: float
    other: float
    after: float
    batch: int
    """How many inputs shared its run."""
    items: int = 1
    """How many of them it brought itself."""

    @property
    def known(self) -> bool:
        """Whether its answer came out of the server's cache, past the line."""
        return self.row.detail.get("cache") == "hit"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run that can be replayed."""

    trips: tuple[Trip, ...]
    arrivals: Arrivals
    n: int
    """Steady requests, whatever became of them."""
    outcomes: Counter[str] = field(default_factory=Counter)
    queue_known: bool = True
    net_floor_ms: float | None = None
    """The smallest `net`; None where no row has one."""
    caveats: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[tuple[int, float]]:
        """(items, seconds) of every answered request's run."""
        return [(trip.batch, trip.service / 1000) for trip in self.trips if not trip.known]

    def mean(self, what: str) -> float:
        """The mean of one of a trip's figures, in milliseconds."""
        return fmean(getattr(trip, what) for trip in self.trips)

    @property
    def at_once(self) -> int:
        """How many requests were on the model together at most: it has at least so many slots.

        Spans are narrowed by a tenth at both ends, for where they begin is known to the path's jitter only.
        """
        steps = []
        for trip in self.trips:
            if trip.known:
                continue
            began = trip.row.at_s * 1000 + trip.before + trip.net / 2 + trip.queue
            edge = EDGE_SHARE * trip.service
            steps += [(began + edge, 1), (began + trip.service - edge, -1)]
        inside = most = 0
        for _, step in sorted(steps):
            inside += step
            most = max(most, inside)
        return max(1, most)

    def turnaround_s(self, *, alone: bool) -> float:
        """Seconds for which a slot stays taken after a run, before the next one begins.

        Found where one request began as soon as another ended; else what the server declares as its
        hand-over; else none.
        """
        gaps = _gaps([trip for trip in self.trips if not trip.known]) if alone else []
        if len(gaps) >= ROWS_MIN:
            return max(0.0, median(gaps)) / 1000
        handed = [ms for trip in self.trips if (ms := _handover(trip.row)) is not None]
        return median(handed) / 1000 if handed else 0.0


def recorded(rows: Sequence[Row], arrivals: Arrivals | None = None) -> Recorded:
    """A run's rows made ready; `arrivals` says what its summary knows of how they came.

    Raises CannotPredict.
    """
    steady = sorted((row for row in rows if row.phase == "steady"), key=lambda row: row.at_s)
    outcomes = Counter(str(row.outcome) for row in steady)
    answered = [row for row in steady if row.outcome == "ok"]
    if len(answered) < ROWS_MIN:
        raise CannotPredict(
            f"{len(answered)} answered requests are too few; a prediction needs {ROWS_MIN}"
        )
    cut = sum(row.censored for row in steady)
    if cut > CUT_OFF_SHARE * len(steady):
        shortest = min(row.wall_ms for row in steady if row.censored)
        raise CannotPredict(
            f"{cut} of {len(steady)} requests were cut off (>= {shortest:.0f} ms), so nobody knows how long "
            f"they would have taken; measure again with a longer timeout"
        )
    trips = tuple(_trip(row) for row in answered)
    asked = [trip for trip in trips if not trip.known]
    queue_known = sum("queue" in trip.row.parts for trip in asked) > 0.9 * len(asked)
    _check_told(trips)
    nets = [row.parts["net"].ms for row in answered if "net" in row.parts]
    return Recorded(
        trips=trips,
        arrivals=arrivals or Arrivals(),
        n=len(steady),
        outcomes=outcomes,
        queue_known=queue_known,
        net_floor_ms=min(nets) if nets else None,
        caveats=_caveats(answered, cut),
    )


def found_arrivals(rows: Sequence[Row], given: Arrivals | None = None) -> Arrivals:
    """How steady requests came: as `given`, with their starts; one after the other where the rows say so."""
    steady = sorted((row for row in rows if row.phase == "steady"), key=lambda row: row.at_s)
    first = steady[0].at_s if steady else 0.0
    starts = tuple(row.at_s - first for row in steady)
    if given is not None:
        return replace(given, starts_s=starts)
    ends = [row.at_s + row.wall_ms / 1000 for row in steady]
    pauses = [
        start - end for start, end in zip((row.at_s for row in steady[1:]), ends, strict=False)
    ]
    if len(steady) >= ROWS_MIN and min(pauses) >= 0.0 and max(pauses) < 2 * median(pauses) + 0.01:
        return Arrivals(starts, closed=1, pause_s=median(pauses))
    return Arrivals(starts)


def _trip(row: Row) -> Trip:
    ms = {name: part.ms for name, part in row.parts.items()}
    before = sum(ms.get(name, 0.0) for name in BEFORE)
    service = sum(ms.get(name, 0.0) for name in SERVICE)
    after = sum(ms.get(name, 0.0) for name in AFTER)
    net, queue = ms.get("net", 0.0), ms.get("queue", 0.0)
    items = _count(row, "batch_size", 1)
    return Trip(
        row=row,
        before=before,
        net=net,
        queue=queue,
        service=service,
        other=row.wall_ms - before - net - queue - service - after,
        after=after,
        batch=_count(row, "server_batch", items),
        items=items,
    )


def _count(row: Row, name: str, otherwise: int) -> int:
    value = row.detail.get(name)
    return value if isinstance(value, int) and value > 0 else otherwise


def _check_told(trips: Sequence[Trip]) -> None:
    whole = fmean(trip.row.wall_ms for trip in trips)
    untold = fmean(trip.other for trip in trips)
    service = fmean(trip.service for trip in trips)
    if service <= 0.0 and untold > UNTOLD_SHARE * whole:
        raise CannotPredict(
            f"nothing in the run says how long the model took: {untold / whole:.0%} of the time has no name; "
            f"measure a server that declares it, or calibrate the probe while the server is idle"
        )


def _caveats(answered: Sequence[Row], cut: int) -> tuple[str, ...]:
    said = []
    if cut:
        said.append(f"{cut} requests were cut off and are left out")
    if any(p.note == "to the edge" for row in answered if (p := row.parts.get("net"))):
        said.append("net is the way to the edge; the way on from there is in other")
    if any(row.parts["queue"].source == "estimated" for row in answered if "queue" in row.parts):
        said.append("the queue is estimated, not declared by the server")
    return tuple(said)


def _gaps(trips: Sequence[Trip]) -> list[float]:
    """Milliseconds from the end of one service to the start of the next, where the next one waited."""
    begun = sorted(
        (
            trip.row.at_s * 1000 + trip.before + trip.net / 2 + trip.queue,
            trip.service,
            trip.queue,
        )
        for trip in trips
    )
    gaps = []
    for (began, service, _), (then, _, waited) in pairwise(begun):
        gap = then - began - service
        if waited > 0.1 * service and abs(gap) < 0.5 * service:
            gaps.append(gap)
    return gaps


def _handover(row: Row) -> float | None:
    declared = row.detail.get("declared")
    if not isinstance(declared, dict):
        return None
    ours = declared.get("tailrace")
    value = ours.get("handover") if isinstance(ours, dict) else None
    return float(value) if isinstance(value, int | float) else None
