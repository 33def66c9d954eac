"""`tailrace compare`: two runs side by side, and whether the bottleneck has moved."""

import math
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.console import fail, out, progress_bar
from tailrace.latency.compare import Comparison, Incomparable, Measured, compare, measured
from tailrace.latency.compare.totals import TotalChange
from tailrace.latency.compare.why import PartChange
from tailrace.latency.interval import Change
from tailrace.latency.quantiles import Estimate, ms_text
from tailrace.latency.report.compared import SHOWN_SHARE, compared_page
from tailrace.latency.runs import BadRun
from tailrace.latency.sample import BadSample

COLOURS = {"better": "green", "same": "default", "worse": "red"}
WORSE = 1
"""The exit code for "worse beyond noise"."""


def compare_runs(
    before: Annotated[
        Path, typer.Argument(metavar="A", help="Folder of a run, or a file of rows.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B", help="The run to compare with it.")],
    aa: Annotated[
        Path | None,
        typer.Option("--aa", help="A second run of what A measured: what they differ by is noise."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the resamples.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="All figures as one JSON object.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page that needs nothing else.")
    ] = None,
    lang: Annotated[Literal["en", "ko"], typer.Option(help="The page's language at first.")] = "en",
) -> None:
    """Compare two runs: parts, shares, tails, and whether the bottleneck has moved.

    Exit codes: 0 same or better, 1 worse beyond noise, 2 the runs cannot be compared.

    Examples:
      tailrace compare runs/2026-11-01T0900Z-embed runs/2026-12-01T0900Z-embed
      tailrace compare before.jsonl after.jsonl --json
      tailrace compare runs/before runs/after --html compared.html

    """
    try:
        runs = [measured(path) for path in (before, after)]
        again = measured(aa) if aa is not None else None
        found = _compared(runs, again, seed)
    except (BadRun, BadSample, Incomparable) as bad:
        fail(str(bad))
    if html is not None:
        _write(html, compared_page(found, lang))
    if as_json:
        out.print_json(orjson.dumps(found.to_json()).decode())
    else:
        _show(found)
    if found.turn == "worse":
        raise typer.Exit(WORSE)


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")


def _compared(runs: list[Measured], again: Measured | None, seed: int) -> Comparison:
    with progress_bar() as tell:
        tell("drawing resamples", 0.5)
        return compare(runs[0], runs[1], again, seed=seed)


def _show(found: Comparison) -> None:
    for label, name, summary in zip(
        "AB", (found.before, found.after), found.summaries, strict=True
    ):
        cut = f", {summary.censored} of them cut off" if summary.censored else ""
        p95 = summary.p95.text()
        figures = f"p50 {summary.p50.text()}, p95 {p95}, p99 {summary.p99.text()}"
        out.print(
            f"[bold]{label}[/]  {escape(name)}: {summary.n} rows{cut}; {figures}", soft_wrap=True
        )
    for difference in found.differences:
        out.print(f"[yellow]not alike[/]  {escape(difference.text())}", soft_wrap=True)
    if found.paired:
        out.print(f"changes over {found.paired} pairs of equal prompts")
    out.print(_parts(found))
    out.print(_totals(found))
    for note in found.notes:
        out.print(f"[dim]note: {escape(note)}[/]", soft_wrap=True)
    verdict = found.verdict
    colour = "bold yellow" if verdict.kind == "moved" else "bold"
    out.print(f"[{colour}]verdict[/]  {escape(verdict.text)}", soft_wrap=True)
    if found.tail_verdict is not None:
        tail = found.tail_verdict
        said = tail.text if tail.of in tail.text else f"{tail.text} ({tail.of})"
        out.print(f"[bold]tail[/]     {escape(said)}", soft_wrap=True)
    out.print(f"[bold]why[/]      {escape(found.why)}", soft_wrap=True)
    out.print(_last_word(found), soft_wrap=True)


def _parts(found: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("part")
    table.add_column("source")
    for heading in ("A mean", "B mean", "change [95 %]", "A share", "B share", "points [95 %]"):
        table.add_column(heading, justify="right")
    if found.tails is not None:
        share = f"{(1 - found.tails[0].q) * 100:g} %"
        table.add_column(f"A worst {share}", justify="right")
        table.add_column(f"B worst {share}", justify="right")
    for part in found.parts:
        if max(abs(part.before_share), abs(part.after_share)) >= SHOWN_SHARE:
            table.add_row(*_part_row(part, found))
    whole = [sum(getattr(part, name) for part in found.parts) for name in ("before_ms", "after_ms")]
    tails = [f"{ms_text(tail.total_ms)}{_bound(tail.censored)}" for tail in found.tails or ()]
    means = [
        f"{ms_text(ms)}{_bound(run.censored)}"
        for ms, run in zip(whole, found.summaries, strict=True)
    ]
    change = f"{whole[1] - whole[0]:+.1f} ms"
    table.add_row("total", "", *means, change, "100 %", "100 %", "", *tails, style="bold")
    return table


def _part_row(part: PartChange, found: Comparison) -> list[str]:
    source = part.source_before
    if source != part.source_after:
        source = f"{source} / {part.source_after}"
    cells = [
        part.name,
        source,
        ms_text(part.before_ms),
        ms_text(part.after_ms),
        _change(part.change, 1.0, 1),
        f"{part.before_share:.0%}",
        f"{part.after_share:.0%}",
        _change(part.share_change, 100.0, 0),
    ]
    return [*cells, *(ms_text(tail.parts.get(part.name, 0.0)) for tail in found.tails or ())]


def _totals(found: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("total")
    for heading in ("A", "B", "change [95 % together]", "noise"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for total in found.totals:
        colour = COLOURS[total.turn]
        noise = "unknown" if total.noise is None else f"{_plain(total, total.noise)}"
        source = f" ({total.noise_from})" if total.noise_from else ""
        scale, digits = (1.0, 1) if total.unit == "ms" else (100.0, 1)
        table.add_row(
            total.name,
            _plain(total, total.before),
            _plain(total, total.after),
            _change(total.change, scale, digits),
            f"{noise}{source}",
            f"[{colour}]{total.turn}[/]",
        )
    return table


def _plain(total: TotalChange, value: float) -> str:
    if total.unit == "share":
        return f"{value:.1%}"
    return ms_text(value) if math.isfinite(value) else Estimate(None, refused="cut off").text()


def _change(change: Change, scale: float, digits: int) -> str:
    low, high = change.interval.low * scale, change.interval.high * scale
    body = f"{change.value * scale:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
    return body if change.sure else f"[dim]{escape(body)}[/]"


def _bound(censored: int) -> str:
    return " or more" if censored else ""


def _last_word(found: Comparison) -> str:
    if found.turn == "same":
        return "[bold]same[/]     no change of the total beyond noise"
    turned = [total for total in found.totals if total.turn == found.turn]
    told = ", ".join(
        f"{total.name} {_plain(total, total.before)} to {_plain(total, total.after)}"
        for total in turned
    )
    colour = COLOURS[found.turn]
    return f"[bold {colour}]{found.turn}[/]   beyond noise: {escape(told)}"
