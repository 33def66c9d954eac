"""`tailrace runs`: the runs that were kept."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.console import fail, out
from tailrace.latency.imports import BadImport, recognise
from tailrace.latency.imports.keep import keep_imported
from tailrace.latency.report import keep_reports
from tailrace.latency.runs import BadRun, Listed, list_runs
from tailrace.latency.runs.folder import DEFAULT_ROOT

app = typer.Typer(rich_markup_mode="rich", help="The runs that were kept.")

Root = Annotated[Path, typer.Option("--root", help="The folder that holds the runs.")]
Paths = Annotated[list[Path], typer.Argument(help="Folders of runs.")]
Files = Annotated[list[Path], typer.Argument(help="Result files of other tools.")]
Lang = Annotated[Literal["en", "ko"], typer.Option(help="The reports' language at first.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per run instead of a table.")]


@app.callback(invoke_without_command=True)
def runs(context: typer.Context, root: Root = DEFAULT_ROOT, as_json: Json = False) -> None:
    """List the runs that were kept, newest first; old answers are marked stale.

    Examples:
      tailrace runs
      tailrace runs --root bench/results --json

    """
    if context.invoked_subcommand is not None:
        return
    try:
        found = list_runs(root)
    except BadRun as bad:
        fail(str(bad))
    if as_json:
        for one in found:
            out.print_json(orjson.dumps(_told(one)).decode(), indent=None)
    elif not found:
        out.print(f"No run is kept in {root}; measure one with: tailrace bench run", soft_wrap=True)
    else:
        out.print(_table(found, root))


@app.command()
def report(paths: Paths, lang: Lang = "en") -> None:
    """Write the reports of runs anew: report.md and report.html in their folders.

    Examples:
      tailrace runs report runs/2026-12-01T100000Z-embed --lang ko

    """
    try:
        for path in paths:
            out.print(str(keep_reports(path, lang)), soft_wrap=True)
    except BadRun as bad:
        fail(str(bad))


@app.command("import")
def import_file(files: Files, root: Root = DEFAULT_ROOT, lang: Lang = "en") -> None:
    """Keep the runs of guidellm, aiperf, vllm bench or k6 as folders, to compare and draw them.

    Examples:
      tailrace runs import benchmarks.json
      tailrace runs import profile_export.jsonl --root runs
      tailrace runs import k6-points.json

    """
    try:
        for path in files:
            for found in recognise(path):
                folder, summary = keep_imported(found, root)
                keep_reports(folder, lang)
                out.print(f"{folder}  ({found.tool}, {summary.n:,} requests)", soft_wrap=True)
    except (BadImport, BadRun) as bad:
        fail(str(bad))


def _told(one: Listed) -> dict[str, object]:
    today = datetime.now(UTC).date()
    if one.summary is None:
        return {"path": str(one.path), "trouble": one.trouble}
    s = one.summary
    return {
        "path": str(one.path),
        "began": s.began,
        "scenario": s.scenario,
        "case": s.case,
        "target": s.target,
        "n": s.n,
        "p50_ms": s.total.p50 if s.total else None,
        "p95_ms": s.total.p95 if s.total else None,
        "leading": s.leading,
        "valid": s.validity.valid,
        "reasons": s.validity.reasons,
        "best_before": s.best_before,
        "stale": one.stale(today),
    }


def _table(found: list[Listed], root: Path) -> Table:
    table = Table(caption="p50 and p95 of the whole, in ms; a dash where too few rows can tell")
    numbers = {"n", "p50", "p95"}
    for name in ("run", "scenario", "target", "n", "p50", "p95", "leads", "valid", "fresh"):
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    today = datetime.now(UTC).date()
    for one in found:
        table.add_row(*_cells(one, root, stale=one.stale(today)))
    return table


def _cells(one: Listed, root: Path, *, stale: bool) -> list[str]:
    name = escape(str(one.path.relative_to(root)) if one.path != root else one.path.name)
    s = one.summary
    if s is None:
        return [name, "", "", "", "", "", "", f"[red]{escape(one.trouble or '')}[/]", ""]
    p50, p95 = (s.total.p50, s.total.p95) if s.total else (None, None)
    leads = s.leading or "-"
    if s.leading:
        leads += f" {s.parts[s.leading].share:.0%}"
    scenario = f"{s.scenario} · {s.case}" if s.case else s.scenario
    valid = "[green]yes[/]" if s.validity.valid else f"[red]no[/] {escape(s.validity.reasons[0])}"
    fresh = f"[yellow]stale since {s.best_before}[/]" if stale else f"until {s.best_before}"
    return [
        name,
        escape(scenario),
        escape(s.target),
        str(s.n),
        _ms(p50),
        _ms(p95),
        leads,
        valid,
        fresh,
    ]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
