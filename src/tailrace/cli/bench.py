"""`tailrace bench`: ask a server in a rhythm fixed beforehand, and keep what became of every request."""

import asyncio
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tailrace.bench import session
from tailrace.bench.errors import BadScenario, NoAnswer
from tailrace.bench.overview import (
    CASE_HEADS,
    STEP_HEADS,
    case_cells,
    keep_overview,
    step_cells,
)
from tailrace.bench.scenario import Scenario, cases, read_scenario, shipped
from tailrace.cli.console import INTERRUPTED, err, fail, out
from tailrace.latency.report import keep_reports
from tailrace.latency.runs import BadRun, Summary, open_run
from tailrace.latency.runs.folder import DEFAULT_ROOT
from tailrace.latency.self_test import TOLERANCE_MS, Reading, self_test

REFRESH_HZ = 1
"""Drawing takes milliseconds of the interpreter that sends: more often, and it would be measured."""

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Load a server in a fixed rhythm."
)

Name = Annotated[str, typer.Argument(help="A .toml file, or a name of `tailrace bench list`.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="A setting by path: --set load.rate=20")
]
Root = Annotated[Path, typer.Option("--root", help="Where the run is kept.")]
Url = Annotated[str | None, typer.Option("--target", help="Whom to ask: target.url.")]
RunName = Annotated[str | None, typer.Option("--name", help="The run's folder; else dated.")]
Remote = Annotated[
    bool, typer.Option("--remote", help="The target is another machine, and I may load it.")
]
Check = Annotated[bool, typer.Option("--check", help="Print the cases and leave.")]
Lang = Annotated[Literal["en", "ko"], typer.Option(help="The reports' language at first.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


@app.command("list")
def list_scenarios() -> None:
    """Show the scenarios that come with the package.

    Examples:
      tailrace bench list

    """
    table = Table()
    for name in ("scenario", "cases", "question"):
        table.add_column(name, justify="right" if name == "cases" else "left")
    for name in shipped():
        scenario = read_scenario(name)
        table.add_row(name, str(len(cases(scenario))), escape(scenario.question))
    out.print(table)


@app.command("self-test")
def self_tested() -> None:
    """Read servers of a fixed delay; exit code 2 where the generator misses one.

    Examples:
      tailrace bench self-test

    """
    try:
        found = asyncio.run(self_test())
    except OSError as error:
        fail(f"the self-test cannot run: {error}")
    out.print(_readings(found))
    if not all(reading.good for reading in found):
        raise typer.Exit(2)


@app.command()
def run(
    scenario: Name,
    changes: Changes = None,
    target: Url = None,
    root: Root = DEFAULT_ROOT,
    name: RunName = None,
    remote: Remote = False,
    check: Check = False,
    lang: Lang = "en",
    as_json: Json = False,
) -> None:
    """Carry a scenario out and keep one folder for each of its cases.

    Exit code 2 where a run cannot be believed, with the reason.

    Examples:
      tailrace bench run embed
      tailrace bench run embed --target http://127.0.0.1:8080/v1 --set load.length=5s
      tailrace bench run doors --set rounds=2 --name before
      tailrace bench run my-question.toml --root results --remote

    """
    try:
        asked = read_scenario(scenario, scenario_changes(changes or [], target))
        if check:
            out.print_json(data=[case.model_dump(mode="json") for case in cases(asked)])
            return
        outcome = _carry_out(asked, root, name, remote=remote)
    except (BadScenario, BadRun) as bad:
        fail(str(bad))
    except NoAnswer as none:
        fail(f"{none}; is it running, and is the address right?")
    keep_overview(outcome)
    if as_json:
        out.print_json(data=[s.model_dump(mode="json", by_alias=True) for _, s in outcome.runs])
    else:
        out.print(_table(outcome))
        for path, summary in outcome.runs:
            if (steps := _steps(path, summary)) is not None:
                out.print(steps)
        out.print(f"kept in {outcome.folder}", soft_wrap=True)
    for path, summary in outcome.runs:
        if summary.phases:
            keep_reports(path, lang)
        for why in summary.validity.reasons:
            case = summary.case or summary.scenario
            err.print(f"[bold red]not valid[/] {escape(case)}: {escape(why)}", soft_wrap=True)
    if outcome.stopped:
        raise typer.Exit(INTERRUPTED)
    if not outcome.valid:
        raise typer.Exit(2)


def scenario_changes(words: list[str], target: str | None) -> dict[str, Any]:
    """`--set path=value`, where the value is TOML, or a text without quotes."""
    found: dict[str, Any] = {} if target is None else {"target.url": target}
    for word in words:
        path, sign, value = word.partition("=")
        if not sign or not path:
            raise BadScenario(f"--set takes a path and a value, as in load.rate=20; not {word!r}")
        try:
            found[path] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[path] = value
    return found


def _carry_out(asked: Scenario, root: Path, name: str | None, *, remote: bool) -> session.Outcome:
    columns = (
        TextColumn("{task.description:<36}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, refresh_per_second=REFRESH_HZ) as bars:
        bar = bars.add_task(asked.name, total=1.0, told="")

        def tell(progress: session.Progress) -> None:
            p50 = "" if progress.p50_ms is None else f" · p50 {progress.p50_ms:,.1f} ms"
            bars.update(
                bar,
                description=f"{progress.block}/{progress.blocks} {progress.case or asked.name}",
                completed=progress.share,
                told=f"{progress.sent:,} answered · {progress.inside} on their way{p50}",
            )

        return asyncio.run(session.run_scenario(asked, root, tell, remote=remote, name=name))


def _table(outcome: session.Outcome) -> Table:
    table = Table(caption=_caption(outcome))
    for name in CASE_HEADS:
        table.add_column(name, justify="left" if name in {"case", "leads", "valid"} else "right")
    for _, summary in outcome.runs:
        *cells, valid = case_cells(summary)
        colour = "green" if summary.validity.valid else "red"
        table.add_row(*map(escape, cells), f"[{colour}]{valid}[/]")
    return table


def _steps(path: Path, summary: Summary) -> Table | None:
    cells = step_cells(open_run(path).rows) if summary.n else []
    if not cells:
        return None
    table = Table(title=f"{escape(summary.case or summary.scenario)}, step by step")
    for name in STEP_HEADS:
        table.add_column(name, justify="right")
    for line in cells:
        table.add_row(*line)
    return table


def _caption(outcome: session.Outcome) -> str:
    words = "ms; a dash where too few requests can tell"
    if outcome.aa_noise is not None:
        words += f"; the same twice (A/A) differs by {outcome.aa_noise:.1%} at p50"
    return words


def _readings(found: list[Reading]) -> Table:
    table = Table(
        caption=f"ms that the generator reads beyond the server's own account; {TOLERANCE_MS} allowed"
    )
    for name in ("delay", "beyond at p50", "passed"):
        table.add_column(name, justify="right")
    for reading in found:
        passed = "[green]yes[/]" if reading.good else "[red]no[/]"
        table.add_row(f"{reading.delay_ms:g}", f"{reading.off_ms:.3f}", passed)
    return table
