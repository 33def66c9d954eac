"""`tailrace calibrate`: does batching pay on this machine, and up to which size."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tailrace.apps.api.calibrating import calibrated
from tailrace.apps.api.settings import ApiSettings
from tailrace.cli.console import fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.models.calibration import Calibration
from tailrace.serve.settings import BadConfiguration, load

Config = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file of settings.")]
Rounds = Annotated[int, typer.Option(help="How often each size is measured.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def calibrate(config: Config = None, rounds: Rounds = 7, as_json: Json = False) -> None:
    """Measure whether shared runs pay here, and keep the answer for `tailrace api`.

    Examples:
      tailrace calibrate
      tailrace calibrate --config configs/api.toml --json

    """
    try:
        settings = load(ApiSettings, config)
        with progress_bar() as progress:
            found = calibrated(settings, progress, rounds)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except TailraceError as error:
        fail(str(error))
    if as_json:
        out.print_json(json.dumps({name: asdict(one) for name, one in found.items()}))
        return
    for name, one in found.items():
        out.print(_table(name, one))
        out.print(f"[bold]{name}[/]: {one.words()}", soft_wrap=True)


def _table(name: str, found: Calibration) -> Table:
    """Microseconds a token: inputs of one length by row, padded tokens of the run by column."""
    budgets = sorted({point.length * point.items for point in found.points})
    table = Table(title=f"{name}: microseconds a token, by padded tokens of the run")
    table.add_column("tokens each", justify="right")
    for budget in budgets:
        table.add_column(str(budget), justify="right")
    for length in sorted({point.length for point in found.points}):
        cost = {p.length * p.items: p.us_per_token for p in found.points if p.length == length}
        cells = [f"{cost[budget]:.0f}" if budget in cost else "" for budget in budgets]
        table.add_row(str(length), *cells)
    return table
