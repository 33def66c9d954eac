"""`tailrace demo`: stories that are told by measuring them."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from tailrace.bench.errors import NoAnswer
from tailrace.cli.bottleneck import Story, tell_story
from tailrace.cli.bottleneck_page import KEYS, page
from tailrace.cli.bottleneck_words import WORDS
from tailrace.cli.console import fail, out, progress_bar
from tailrace.latency.runs import BadRun, new_folder
from tailrace.latency.runs.folder import DEFAULT_ROOT
from tailrace.latency.runs.summary import steady

REPORT = "bottleneck.html"

app = typer.Typer(
    rich_markup_mode="rich", no_args_is_help=True, help="Stories that are told by measuring them."
)


@app.callback()
def demo() -> None:
    """Stories that are told by measuring them."""


@app.command()
def bottleneck(
    root: Annotated[
        Path, typer.Option("--root", help="The folder that keeps the runs.")
    ] = DEFAULT_ROOT,
    language: Annotated[
        Literal["ko", "en"], typer.Option("--lang", help="The report's language at first.")
    ] = "ko",
) -> None:
    """Measure how a bottleneck moves, and foretell the place that wins: some two minutes.

    Starts four small servers on this machine: far and shared at two dates, near but slow, and near, fast and
    dedicated. All are measured for real; the last one is foretold from the second first.

    Examples:
      tailrace demo bottleneck
      tailrace demo bottleneck --root /tmp/runs --lang en

    """
    try:
        folder = new_folder(root, "bottleneck")
        with progress_bar() as tell:
            story = tell_story(folder, tell)
    except (BadRun, NoAnswer, OSError) as bad:
        fail(str(bad))
    report = folder / REPORT
    report.write_text(page(story, language), encoding="utf-8")
    out.print(_table(story))
    out.print(story.verdict.text, soft_wrap=True)
    for foretold in (story.near, story.edge):
        met = sum(one.good for one in foretold.score.figures)
        out.print(
            f"{foretold.prediction.said} {met} of {len(foretold.score.figures)} figures were met.",
            soft_wrap=True,
        )
    out.print(f"report: {report}", soft_wrap=True)


def _table(story: Story) -> Table:
    made = Table(caption="ms; what was cut off is no latency")
    for name in ("", "n", "cut off", "p50", "leads"):
        made.add_column(name, justify="left" if name in {"", "leads"} else "right", no_wrap=True)
    for key in KEYS:
        summary = story.runs[key].summary
        p50 = summary.total.p50 if summary.total else None
        leads = summary.leading or "-"
        made.add_row(
            WORDS["en"][key],
            str(len(steady(story.runs[key].rows))),
            str(summary.censored),
            f">= {summary.censored_from_ms:,.0f}" if p50 is None else f"{p50:,.0f}",
            leads,
        )
    return made
