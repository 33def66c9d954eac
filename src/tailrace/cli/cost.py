"""`tailrace cost`: what the calls of a run cost, by the call and on a machine of one's own."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError
from rich.markup import escape
from rich.table import Table

from tailrace.cli.console import fail, out
from tailrace.latency.cost import BadCost, Prices
from tailrace.latency.cost import cost as cost_of
from tailrace.latency.report import money
from tailrace.latency.runs import BadRun, open_run

Runs = Annotated[list[Path], typer.Argument(help="Folders of runs.")]
PerCall = Annotated[float, typer.Option(help="Price of one call.")]
PerMtokIn = Annotated[float, typer.Option(help="Price of a million input tokens.")]
PerMtokOut = Annotated[float, typer.Option(help="Price of a million output tokens.")]
Machine = Annotated[float, typer.Option(help="Price of a resident machine for a month.")]
Cap = Annotated[float | None, typer.Option(help="What may be spent in --cap-months.")]
CapMonths = Annotated[float, typer.Option(help="How long the cap has to last.")]
Peak = Annotated[float, typer.Option(help="The busiest hour against the mean of the month.")]
Currency = Annotated[str, typer.Option(help="The currency of all prices.")]
Lang = Annotated[Literal["en", "ko"], typer.Option(help="The language of the table.")]


def cost(
    runs: Runs,
    per_call: PerCall = 0.0,
    per_mtok_in: PerMtokIn = 0.0,
    per_mtok_out: PerMtokOut = 0.0,
    machine_month: Machine = 0.0,
    cap: Cap = None,
    cap_months: CapMonths = 3.0,
    peak: Peak = 3.0,
    currency: Currency = "KRW",
    lang: Lang = "en",
) -> None:
    """Set a price per call against a resident machine, by traffic, with what the run measured.

    Examples:
      tailrace cost runs/2026-12-01T100000Z-embed --per-call 0.2 --machine-month 60000 --cap 360000
      tailrace cost runs/2026-12-01T100000Z-llm --per-mtok-in 140 --per-mtok-out 560 --lang ko

    """
    try:
        prices = Prices(
            currency=currency,
            per_call=per_call,
            per_mtok_in=per_mtok_in,
            per_mtok_out=per_mtok_out,
            machine_month=machine_month,
            cap=cap,
            cap_months=cap_months,
            peak=peak,
        )
        found = [(path, cost_of(open_run(path), prices)) for path in runs]
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"--{step}: ".replace("_", "-") for step in first["loc"])
        fail(f"{where}{first['msg'].removeprefix('Value error, ')}")
    except (BadRun, BadCost) as bad:
        fail(str(bad))
    for path, one in found:
        out.print(f"[bold]{escape(path.name)}[/]")
        for line in money.sentences(one, lang):
            out.print(line, soft_wrap=True)
        table = Table(caption=currency)
        for head in money.HEADS[lang]:
            table.add_column(head, justify="right")
        for cells in money.cells(one, lang):
            table.add_row(*cells)
        out.print(table)
