"""`tailrace whatif`: what a change would bring, before anyone makes it; and, later, whether it did."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tailrace.cli.console import fail, out, progress_bar
from tailrace.cli.foretelling import DOORS, foretell, open_measured
from tailrace.cli.whatif_words import error_lines, score_table, table
from tailrace.latency.prediction import BadPrediction, keep, keep_score, kept, past_errors
from tailrace.latency.prediction import score as judge
from tailrace.latency.runs import BadRun, open_run
from tailrace.serve.settings import BadConfiguration
from tailrace.simulate.levers import BadLever, listed, parse
from tailrace.simulate.recorded import CannotPredict


class _RunOrVerb(TyperGroup):
    """`whatif RUN …` without a verb is a prediction."""

    otherwise = "predict"

    def parse_args(
        self,
        ctx: Any,  # typer keeps its context's class to itself
        args: list[str],
    ) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [self.otherwise, *args]
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
Slots = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at once on the measured server; found out if not given."),
]
Config = Annotated[
    Path | None, typer.Option(help="The box's configuration, where it is not the default.")
]
Seed = Annotated[int, typer.Option(help="The first seed of the replications.")]
Keep = Annotated[bool, typer.Option("--keep/--no-keep", help="Keep the prediction with the run.")]
Json = Annotated[bool, typer.Option("--json", help="The prediction as JSON instead of a table.")]


@app.command()
def predict(
    run: RunPath,
    set_: Set = None,
    ladder: Ladder = None,
    door: Door = None,
    slots: Slots = None,
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
