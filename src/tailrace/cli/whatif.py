"""`tailrace whatif`: what a change would bring, before anyone makes it; and, later, whether it did."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tailrace.apps.review.settings import BoxSettings
from tailrace.cli.console import fail, out, progress_bar
from tailrace.cli.whatif_words import error_lines, finding, score_table, table, warnings
from tailrace.latency.measure import POLL_S
from tailrace.latency.prediction import (
    BadPrediction,
    Band,
    Expected,
    Prediction,
    expected,
    keep,
    keep_score,
    kept,
    measured,
    past_errors,
)
from tailrace.latency.prediction import score as judge
from tailrace.latency.runs import BadRun, Run, open_run
from tailrace.serve.settings import BadConfiguration, DoorSettings, load
from tailrace.simulate.forecast import RANGE_USE, Forecast, prepare
from tailrace.simulate.levers import BadLever, Levers, listed, parse
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.recorded import (
    Arrivals,
    CannotPredict,
    Recorded,
    found_arrivals,
    recorded,
)
from tailrace.wire.record import Row

DOORS = ("limited", "batched", "queue")
BASE_REPLICATIONS = 20
"""Of the run as it was: enough to see whether it can be replayed at all."""
ALONE_REPLICATIONS = 8
"""For each of several levers alone: enough for a sentence."""


Tell = Callable[[str, float], None]
"""Told what is being replayed, and the share done."""


def _silent(what: str, share: float) -> None:
    """Nobody looks."""


class _RunOrVerb(TyperGroup):
    """`whatif RUN …` without a verb is a prediction."""

    def parse_args(
        self,
        ctx: Any,  # typer keeps its context's class to itself
        args: list[str],
    ) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["predict", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunOrVerb,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="What a change would bring, before anyone makes it: tailrace whatif RUN --set net=12ms",
)

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a measured run.")]
Set = Annotated[list[str] | None, typer.Option("--set", help=f"A lever; one of: {listed()}.")]
Ladder = Annotated[
    Path | None, typer.Option(help="Another run, that measured runs of several batch sizes.")
]
Door = Annotated[
    str | None, typer.Option(help=f"The door that RUN was measured at: {', '.join(DOORS)}.")
]
Slots = Annotated[int, typer.Option(min=1, help="Runs at once on the server that was measured.")]
Config = Annotated[
    Path | None, typer.Option(help="The box's configuration, where it is not the default.")
]
Seed = Annotated[int, typer.Option(help="The first seed of the replications.")]
Keep = Annotated[bool, typer.Option("--keep/--no-keep", help="Keep the prediction with the run.")]
Json = Annotated[bool, typer.Option("--json", help="The prediction as JSON instead of a table.")]


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


@app.command()
def predict(
    run: RunPath,
    set_: Set = None,
    ladder: Ladder = None,
    door: Door = None,
    slots: Slots = 1,
    config: Config = None,
    seed: Seed = 0,
    keeping: Keep = True,
    as_json: Json = False,
) -> None:
    """Predict what RUN would have looked like after some levers, and keep the prediction.

    The real lane is replayed on a virtual clock with the requests of RUN.

    Examples:
      tailrace whatif runs/2026-11-30T101500Z-far --set net=12ms --set dedicated --set speed=2x
      tailrace whatif runs/… --set door=batched --ladder runs/…-ladder
      tailrace whatif score runs/…/predictions/….json runs/2026-12-07T101500Z-near

    """
    try:
        levers = parse(set_ or [])
        if not levers:
            fail(f"nothing is changed; set a lever: {listed()}")
        opened = open_measured(run, ladder=ladder, door=door, slots=slots, config=config)
        with progress_bar() as tell:
            prediction = foretell(opened, levers, seed=seed, tell=tell)
    except (BadRun, BadLever, CannotPredict) as bad:
        fail(str(bad))
    except BadConfiguration as bad:
        fail("; ".join(f"{path}: {what}" for path, what in bad.mistakes))
    path = keep(prediction, run) if keeping else None
    if as_json:
        out.print_json(prediction.model_dump_json(by_alias=True), indent=None)
        return
    out.print(table(prediction))
    for line in (prediction.said, *error_lines(past_errors(run.parent))):
        out.print(line, soft_wrap=True)
    for line in (*prediction.warnings, *prediction.doubts, *prediction.caveats):
        out.print(f"[yellow]![/] {line}", soft_wrap=True)
    if path is not None:
        out.print(
            f"kept as {path}; judge it later with: tailrace whatif score {path} RUN", soft_wrap=True
        )


@app.command()
def score(
    prediction: Annotated[Path, typer.Argument(help="A kept prediction.")],
    run: Annotated[Path, typer.Argument(help="The run that was measured after the change.")],
    as_json: Json = False,
) -> None:
    """Set a kept prediction beside the run that came; exit code 1 where it was off.

    Examples:
      tailrace whatif score runs/far/predictions/2026-12-01T….json runs/near

    """
    try:
        said = kept(prediction)
        found = judge(said, open_run(run))
        after = keep_score(said, prediction, found)
    except (BadRun, BadPrediction) as bad:
        fail(str(bad))
    if as_json:
        out.print_json(found.model_dump_json(), indent=None)
    else:
        out.print(score_table(after, found))
        for line in error_lines(past_errors(prediction.parent.parent.parent)):
            out.print(line, soft_wrap=True)
    if not found.good:
        raise typer.Exit(1)


def open_measured(
    path: Path,
    *,
    ladder: Path | None = None,
    door: str | None = None,
    slots: int = 1,
    config: Path | None = None,
) -> Measured:
    """Open a run's folder for predictions; raises BadRun, CannotPredict, BadLever, BadConfiguration."""
    run = open_run(path)
    doors = door_plans(load(BoxSettings, config))
    name = door or _door_of(run.rows)
    if name is not None and name not in doors:
        raise BadLever(f"there is no door {name!r} with a lane; choose one of {', '.join(doors)}")
    plan = LanePlan(slots=slots) if name is None else doors[name]
    sizes: list[tuple[int, float]] = []
    if ladder is not None:
        sizes = recorded(open_run(ladder).rows).sizes
    ready = recorded(run.rows, found_arrivals(run.rows, _arrivals(run)))
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
    then = expected(_runs(after, seed, tell, "after the levers"), ranges_only=ranges_only)
    alone: list[tuple[Levers, Expected]] = []
    if len(levers.words()) > 1:
        alone = [*_each_alone(opened, levers, seed, tell)]
    capacity = [c for bound in after.bounds if (c := after.capacity_per_s(bound)) is not None]
    caveats = list(after.caveats)
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
        requests=opened.recorded.n,
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
    rate = run.summary.plan.get("rate")
    if sent.kind == "open-poisson" and isinstance(rate, int | float) and rate > 0:
        return Arrivals(rate=float(rate))
    if sent.kind in {"staircase", "burst", "replay"}:
        return Arrivals(fixed=True)
    return None if sent.kind == "one-by-one" else Arrivals()


def _callers(run: Run) -> CallerPlan:
    timeout_s = run.summary.plan.get("timeout_s")
    if isinstance(timeout_s, int | float) and timeout_s > 0:
        return CallerPlan(timeout_s=float(timeout_s), poll_s=POLL_S)
    return CallerPlan(poll_s=POLL_S)


def _capacity(values: Sequence[float]) -> Band | None:
    if not values:
        return None
    mid = values[0] if len(values) == 1 else None
    return Band(mid=mid, low=min(values), high=max(values))
