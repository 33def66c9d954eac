"""From a run and some levers to a forecast: what has to be known is known, or it is said what is not.

Refuses rather than guesses. Knows what levers need; how a forecast is replayed is in forecast.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from tailrace.simulate.curve import BatchCurve, bounds, fit
from tailrace.simulate.forecast import Forecast
from tailrace.simulate.levers import Levers
from tailrace.simulate.plan import CallerPlan, LanePlan, pulled
from tailrace.simulate.pulled import Bound, doubts, needs, usual
from tailrace.simulate.recorded import CannotPredict, Recorded

OTHERS_FACTOR = 1.5
OTHERS_SHARE = 0.05
"""A queue so much longer than the run's own requests can have made it, and such a share of the whole, is
taken to be others' too."""
OTHERS = (
    "the line of this run is filled by others too, and how it would answer is not known; set dedicated "
    "as well"
)
UNTOLD = (
    "the run has no queue figure, so nothing is known of the line; measure a server that declares it, or "
    "calibrate the probe while it is idle"
)
SHARES = "the server lets requests share runs, by a rule that is not known; name the door (--door)"
LINE_LEVERS = ("rate", "servers", "door", "seats", "queue-timeout", "window", "batch")
"""Levers whose effect is the line's."""


def prepare(
    run: Recorded,
    levers: Levers,
    plan: LanePlan,
    doors: dict[str, LanePlan],
    *,
    callers: CallerPlan | None = None,
    ladder: Sequence[tuple[int, float]] = (),
    others: bool | None = None,
) -> Forecast:
    """A prediction of `run`, measured under `plan`, after `levers`.

    `ladder` holds more (items, seconds) of runs of several sizes, where another run measured them;
    `others` says whether the line is filled by others too, and is found out where it is None.

    Raises:
        CannotPredict: the run lacks what a lever needs.
        BadLever: a lever has nothing to work on.

    """
    needs(run, levers)
    unknown = _unknown_line(run, plan)
    if others is None:
        others = unknown is not None or shared_with_others(run, plan, ladder)
    _needs_own_line(levers, unknown or (OTHERS if others and not levers.dedicated else None))
    if others and levers.dedicated and levers.servers is None:
        plan = replace(plan, slots=1)  # of a shared place nobody knows how much of it is ours
    after = pulled(plan, levers, doors)
    if after.shares and any(trip.items > 1 for trip in run.trips):
        raise CannotPredict(
            "the run's requests bring several inputs each, and how these would share runs is not told; "
            "measure requests of one input"
        )
    curves, said = _curves(run, after, ladder)
    said = [*said, *doubts(run, levers, others=others)]
    if said and 0 in curves:
        curves = {-1: curves[0], 1: curves[0]}
    elif not said:
        curves = {0: curves[0]}
    return Forecast(
        run=run,
        levers=levers,
        plan=after,
        callers=_callers(callers or CallerPlan(), levers),
        others=others,
        curves=curves,
        turnaround_s=run.turnaround_s(alone=not plan.shares and plan.slots == 1 and not others),
        doubts=tuple(said),
        caveats=_caveats(run, levers, others=others),
    )


def shared_with_others(
    run: Recorded, plan: LanePlan, ladder: Sequence[tuple[int, float]] = ()
) -> bool:
    """Whether the recorded queue is far longer than the run's own requests can have made it."""
    if not run.queue_known:
        return False
    whole = sum(run.mean(name) for name in ("before", "net", "queue", "service", "other", "after"))
    if run.mean("queue") < OTHERS_SHARE * whole:
        return False
    alone = Forecast(
        run, Levers(), plan, CallerPlan(), False, _curves(run, plan, ladder)[0], 0.0, (), ()
    )
    bound = max(alone.curves)
    rows = alone.replicate(0, bound, paired=True).rows
    own = fmean(row.parts["queue"].ms for row in rows if row.outcome == "ok")
    return run.mean("queue") > OTHERS_FACTOR * own + OTHERS_SHARE * whole


def _unknown_line(run: Recorded, plan: LanePlan) -> str | None:
    """Why nothing is known of the line, even of its own part of it; None where it is known."""
    if not run.queue_known:
        return UNTOLD
    if not plan.shares and any(trip.batch > trip.items for trip in run.trips):
        return SHARES
    return None


def _needs_own_line(levers: Levers, unknown: str | None) -> None:
    """Levers that ask how the line would answer need to know it; raises CannotPredict."""
    asked = [word.partition("=")[0] for word in levers.words()]
    for name in asked:
        if unknown is not None and (name in LINE_LEVERS or name == "dedicated"):
            raise CannotPredict(f"{name}: {unknown}")


def _curves(
    run: Recorded, plan: LanePlan, ladder: Sequence[tuple[int, float]]
) -> tuple[dict[Bound, BatchCurve], list[str]]:
    """The curve, or both its bounds and why."""
    found = fit([*ladder, *run.sizes]) if ladder or len({t.batch for t in run.trips}) > 1 else None
    if found is not None:
        return {0: found}, []
    alone_s = usual(run.trips) / 1000
    if not plan.shares or alone_s <= 0.0:
        return {0: BatchCurve(0.0, alone_s or 1.0)}, []
    quick, slow = bounds(alone_s)
    said = (
        "only runs of one size were measured: what company saves is not known (give a ladder run)"
    )
    return {-1: quick, 1: slow}, [said]


def _callers(callers: CallerPlan, levers: Levers) -> CallerPlan:
    if levers.timeout_s is not None:
        callers = replace(callers, timeout_s=levers.timeout_s)
    if levers.retries is not None:
        callers = replace(callers, retries=levers.retries)
    return callers


def _caveats(run: Recorded, levers: Levers, *, others: bool) -> tuple[str, ...]:
    said = list(run.caveats)
    if not run.queue_known:
        said.append(
            "the run has no queue figure: whatever the line costs is taken to stay as it is"
        )
    if levers.dedicated and not others:
        said.append(
            "dedicated: the queue of this run is its own requests'; nobody else's is removed"
        )
    if levers.dedicated and others and levers.servers is None:
        said.append("dedicated: a place that answers one at a time (set servers for more)")
    if levers.cache:
        said.append("cache: which answers are known is taken to be chance, however long they take")
    if levers.rate is not None and run.arrivals.closed is not None:
        raise CannotPredict(
            "rate: the run's callers asked one after the other; there is no rate to change"
        )
    return tuple(said)
