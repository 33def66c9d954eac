"""From a kept run and some levers to a prediction: opens the run, replays it, and puts the figures together.

The one place that knows runs, replays and predictions at once. How they are shown is in whatif.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from tailrace.apps.review.settings import BoxSettings
from tailrace.cli.whatif_words import finding, warnings
from tailrace.latency.measure import POLL_S
from tailrace.latency.prediction import Band, Expected, Prediction, expected, measured
from tailrace.latency.runs import Run, open_run
from tailrace.latency.runs.summary import stale
from tailrace.serve.settings import DoorSettings, load
from tailrace.simulate.forecast import RANGE_USE, Forecast
from tailrace.simulate.levers import BadLever, Levers, seconds
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.prepare import prepare
from tailrace.simulate.recorded import Arrivals, CannotPredict, Recorded, found_arrivals, recorded
from tailrace.wire.record import Row

DOORS = ("limited", "batched", "queue")
BASE_REPLICATIONS = 20
"""Of the run as it was: enough to see whether it can be replayed at all."""
STRANGE = 0.5
"""A replay that misses the run it is of by more than this is of something else."""
ALONE_REPLICATIONS = 8
"""For each of several levers alone: enough for a sentence."""


Tell = Callable[[str, float], None]
"""Told what is being replayed, and the share done."""


def _silent(what: str, share: float) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run, opened and ready to be replayed."""

    run: Run
    recorded: Recorded
    plan: LanePlan
    doors: dict[str, LanePlan]
    callers: CallerPlan
    ladder: tuple[tuple[int, float], ...]

    def forecast(self, levers: Levers) -> Forecast:
        """A prediction, not yet replayed."""
        return prepare(
            self.recorded,
            levers,
            self.plan,
            self.doors,
            callers=self.callers,
            ladder=self.ladder,
        )


def open_measured(
    path: Path,
    *,
    ladder: Path | None = None,
    door: str | None = None,
    slots: int | None = None,
    config: Path | None = None,
) -> Measured:
    """Open a run's folder for predictions; raises BadRun, CannotPredict, BadLever, BadConfiguration."""
    run = open_run(path)
    doors = door_plans(load(BoxSettings, config))
    name = door or _door_of(run.rows)
    if name is not None and name not in doors:
        raise BadLever(f"there is no door {name!r} with a lane; choose one of {', '.join(doors)}")
    sizes: list[tuple[int, float]] = []
    if ladder is not None:
        sizes = recorded(open_run(ladder).rows).sizes
    ready = recorded(run.rows, found_arrivals(run.rows, _arrivals(run)))
    plan = LanePlan(slots=slots or ready.at_once) if name is None else doors[name]
    if name is None and ready.outcomes["refused"]:
        raise CannotPredict(
            f"{ready.outcomes['refused']} requests were refused, by seats that are not known; "
            f"say which door was measured: --door limited"
        )
    return Measured(run, ready, plan, doors, _callers(run), tuple(sizes))


def foretell(
    opened: Measured, levers: Levers, *, seed: int = 0, tell: Tell = _silent
) -> Prediction:
    """Replay the run as it was, with each lever alone, and with all of them."""
    base = opened.forecast(Levers())
    after = opened.forecast(levers)
    ranges_only = bool(after.doubts) or (after.use or 0.0) > RANGE_USE
    now = measured(opened.run.rows)
    replayed = expected(
        _runs(base, seed, tell, "as it was", BASE_REPLICATIONS), ranges_only=bool(base.doubts)
    )
    _check_replay(now, replayed)
    then = expected(_runs(after, seed, tell, "after the levers"), ranges_only=ranges_only)
    alone: list[tuple[Levers, Expected]] = []
    if len(levers.words()) > 1:
        alone = [*_each_alone(opened, levers, seed, tell)]
    capacity = [c for bound in after.bounds if (c := after.capacity_per_s(bound)) is not None]
    caveats = [*_of_the_run(opened.run), *after.caveats]
    if after.plan.slots > 1 and not after.levers.servers:
        caveats.append(
            f"{after.plan.slots} requests were on the model together: it is taken for a lane of so many slots"
        )
    if (use := after.use) is not None and use > RANGE_USE:
        caveats.append(
            f"the model would be asked for {use:.0%} of its time: above {RANGE_USE:.0%} only ranges are told"
        )
    return Prediction(
        made=datetime.now(UTC),
        run=opened.run.name,
        levers=levers.words(),
        commit=opened.run.env.get("commit"),
        seeds=tuple(range(seed, seed + after.replications)),
        requests=after.requests,
        use=use,
        capacity_per_s=_capacity(capacity),
        ranges_only=ranges_only,
        doubts=after.doubts,
        caveats=tuple(caveats),
        warnings=tuple(warnings(now, replayed, then, alone, after.callers.timeout_s)),
        said=finding(levers, replayed, then),
        now=now,
        replayed=replayed,
        then=then,
    )


def _of_the_run(run: Run) -> Iterator[str]:
    """Why a prediction from the run may be worth less than it says."""
    summary = run.summary
    if not summary.validity.valid:
        yield f"the run is not valid: {summary.validity.reasons[0]}"
    if stale(summary, datetime.now(UTC).date()):
        yield f"the run was best before {summary.best_before}: measure again"


def _check_replay(now: Expected, replayed: Expected) -> None:
    """A run whose own replay is another one cannot be predicted from; raises CannotPredict."""
    real, came = now.total.get("mean"), replayed.total.get("mean")
    if real is None:
        return
    told = "most of its requests would not be answered" if came is None else ""
    if came is not None and not came.low / (1 + STRANGE) <= real.low <= came.high * (1 + STRANGE):
        told = f"its mean would be {came.low:,.0f} to {came.high:,.0f} ms, and it was {real.low:,.0f} ms"
    if told:
        raise CannotPredict(
            f"replayed without any lever {told}: its server is not the lane it is taken for; say --door, or "
            f"--slots for how many requests it runs at once"
        )


def _each_alone(
    opened: Measured, levers: Levers, seed: int, tell: Tell
) -> Iterator[tuple[Levers, Expected]]:
    for one in levers.singly():
        try:
            forecast = opened.forecast(one)
        except (CannotPredict, BadLever):
            continue  # a lever that only works together with another
        runs = _runs(forecast, seed, tell, f"{one.words()[0]} alone", ALONE_REPLICATIONS)
        yield one, expected(runs, ranges_only=bool(forecast.doubts))


def _runs(
    forecast: Forecast, seed: int, tell: Tell, what: str, most: int | None = None
) -> Iterator[Sequence[Row]]:
    count = min(forecast.replications, most or forecast.replications)
    for number in range(count):
        for bound in forecast.bounds:
            tell(what, number / count)
            yield forecast.replicate(seed + number, bound).rows


def door_plans(settings: BoxSettings) -> dict[str, LanePlan]:
    """The doors of a box as plans of a replay."""
    return {name: _door_plan(settings, name) for name in DOORS}


def _door_plan(settings: BoxSettings, name: str) -> LanePlan:
    door: DoorSettings = getattr(settings.doors, name)
    rooms = [p.seats for p in door.policies if p.kind == "waiting-room"]
    times = [p.seconds for p in door.policies if p.kind == "queue-timeout"]
    return LanePlan(
        slots=settings.lane.slots,
        batch=settings.lane.batch.rule(),
        shares=door.batch,
        seats=min(rooms, default=None),
        queue_timeout_s=min(times, default=None),
        tickets=name == "queue",
        waiting_max=settings.lane.waiting_max,
    )


def _door_of(rows: Sequence[Row]) -> str | None:
    """The door that a run's rows name, if they all name one."""
    kinds = {row.detail.get("kind") for row in rows}
    kind = kinds.pop() if len(kinds) == 1 else None
    return (
        kind.removeprefix("door-") if isinstance(kind, str) and kind.startswith("door-") else None
    )


def _arrivals(run: Run) -> Arrivals | None:
    """What the summary knows of how requests came; None where that is to be seen from the rows."""
    sent = run.summary.load
    if sent is None:
        return None
    if sent.kind == "closed" and sent.concurrency:
        return Arrivals(closed=sent.concurrency, pause_s=sent.think_s or 0.0)
    if sent.kind == "staircase" and sent.think_s is not None:
        raise CannotPredict(
            "the run is a staircase of callers; predict from a run of one number of callers"
        )
    rate = _load(run).get("rate")
    if sent.kind == "open-poisson" and isinstance(rate, int | float) and rate > 0:
        return Arrivals(rate=float(rate))
    if sent.kind == "open-constant":
        return Arrivals(fixed=True)
    if sent.kind in {"staircase", "burst", "replay"}:
        return Arrivals(fixed=True)
    return None if sent.kind == "one-by-one" else Arrivals()


def _callers(run: Run) -> CallerPlan:
    timeout = _load(run).get("timeout")
    try:
        timeout_s = seconds(timeout) if isinstance(timeout, str) else inf
    except (ValueError, KeyError):
        timeout_s = inf
    return CallerPlan(timeout_s=timeout_s, poll_s=POLL_S)


def _load(run: Run) -> Mapping[str, Any]:
    """The load table of the scenario that the run was made by."""
    load = run.summary.plan.get("load")
    return load if isinstance(load, Mapping) else {}


def _capacity(values: Sequence[float]) -> Band | None:
    if not values:
        return None
    mid = values[0] if len(values) == 1 else None
    return Band(mid=mid, low=min(values), high=max(values))
