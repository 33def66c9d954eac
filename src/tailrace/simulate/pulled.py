"""What levers do to one request's own times: its path, its service, its length.

Each lever changes one thing and leaves the rest as it was measured. Knows nothing of lines or lanes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tailrace.simulate.levers import Levers
from tailrace.simulate.recorded import AFTER, BEFORE, SERVICE, CannotPredict, Recorded, Trip

Bound = int
"""Which end of what is not known exactly: -1 the quick one, 1 the slow one, 0 where all is known."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What one request brings to a replay, in milliseconds by part."""

    before: Mapping[str, float]
    net: float
    queue: float
    """In somebody else's line, where the run's queue is others'."""
    service: Mapping[str, float]
    other: float
    after: Mapping[str, float]
    weight: float
    """Its service against the usual run of one input."""
    known: bool = False
    """Whether it needs no run: its answer was in the server's cache."""

    @property
    def before_s(self) -> float:
        """To the server."""
        return (sum(self.before.values()) + self.net / 2) / 1000

    def after_s(self, turnaround_s: float) -> float:
        """From the lane's answer to the parsed result; the lane accounts for the turnaround itself."""
        return max(
            0.0, (self.net / 2 + self.other + sum(self.after.values())) / 1000 - turnaround_s
        )


def needs(run: Recorded, levers: Levers) -> None:
    """Refuse levers for which the run holds no figure; raises CannotPredict."""
    if levers.net_ms is not None and run.net_floor_ms is None:
        raise CannotPredict("net: the run has no figure of the path, so nothing is known to change")
    service = run.mean("service")
    if levers.speed is not None and service <= 0.0:
        raise CannotPredict("speed: the run has no figure of the model's own time")
    if levers.reasoning_off and not any("think" in trip.row.parts for trip in run.trips):
        raise CannotPredict("reasoning=off: no request of the run was seen to think")
    if levers.output_cap is not None:
        _needs_output(run, levers)


def _needs_output(run: Recorded, levers: Levers) -> None:
    assert levers.output_cap is not None
    if not any("generate" in trip.row.parts for trip in run.trips):
        raise CannotPredict("output-cap: no request of the run generated anything")
    if levers.output_cap.tokens is not None and not all(_tokens(trip) for trip in run.trips):
        raise CannotPredict(
            "output-cap in tokens: the run does not say how many tokens its answers had; give a share"
        )


def doubts(run: Recorded, levers: Levers, *, others: bool) -> list[str]:
    """Why a prediction is a range: what the run leaves open and the levers touch."""
    said = []
    share = run.mean("other") / max(1e-9, sum(run.mean(w) for w in _ALL))
    if levers.speed is not None and share > 0.10:
        said.append(f"{share:.0%} of the time has no name: it may or may not be the model's")
    if levers.reasoning_off and any(
        p.low is not None for trip in run.trips if (p := trip.row.parts.get("think"))
    ):
        said.append("how long the model thought is an estimate")
    if levers.speed is not None and others and run.queue_known and not levers.dedicated:
        said.append("the line is shared with others: it may or may not move as much faster")
    return said


_ALL = ("before", "net", "queue", "service", "other", "after")


def brought(
    trip: Trip, run: Recorded, levers: Levers, usual_ms: float, *, others: bool, bound: Bound
) -> Brought:
    """What the request would bring after the levers; `usual_ms` is the usual run of its size."""
    ms = {name: part.ms for name, part in trip.row.parts.items()}
    net, before = _path(ms, run, levers)
    service = {name: ms[name] for name in SERVICE if name in ms}
    other = trip.other
    if levers.reasoning_off and "think" in service:
        service["think"] = _still_thinks(trip, bound)
    if levers.output_cap is not None and "generate" in service:
        service["generate"] *= _kept(trip, levers)
    queue = trip.queue if others and not levers.dedicated else 0.0
    if levers.speed is not None:
        service = {name: value / levers.speed for name, value in service.items()}
        if bound < 0:
            other, queue = other / levers.speed, queue / levers.speed
    return Brought(
        before=before,
        net=net,
        queue=queue,
        service=service,
        other=other,
        after={name: ms[name] for name in AFTER if name in ms},
        weight=sum(service.values()) / usual_ms if usual_ms > 0 else 1.0,
        known=trip.known,
    )


def _path(ms: Mapping[str, float], run: Recorded, levers: Levers) -> tuple[float, dict[str, float]]:
    """The path's round trip, and with it the round trips that connecting takes; its jitter stays."""
    net = ms.get("net", 0.0)
    before = {name: ms[name] for name in BEFORE if name in ms}
    if levers.net_ms is None or run.net_floor_ms is None:
        return net, before
    nearer = levers.net_ms - run.net_floor_ms
    for name in ("connect", "tls"):
        if before.get(name, 0.0) > 0.0:
            before[name] = max(0.0, before[name] + nearer)
    return max(0.0, net + nearer), before


def _still_thinks(trip: Trip, bound: Bound) -> float:
    """What is left of an estimated thinking, where it may have been shorter than its estimate."""
    part = trip.row.parts["think"]
    if bound > 0 and part.low is not None:
        return max(0.0, part.ms - part.low)
    return 0.0


def _tokens(trip: Trip) -> int:
    tokens = trip.row.detail.get("output_tokens", 0)
    return tokens if isinstance(tokens, int) else 0


def _kept(trip: Trip, levers: Levers) -> float:
    """The share of its output that a capped answer keeps."""
    cap = levers.output_cap
    assert cap is not None
    if cap.share is not None:
        return cap.share
    assert cap.tokens is not None
    return min(1.0, cap.tokens / _tokens(trip))


def usual(trips: Sequence[Trip]) -> float:
    """The mean service of some trips, in milliseconds."""
    return fmean([trip.service for trip in trips if not trip.known] or [0.0])
