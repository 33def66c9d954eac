"""Writes a run's reports beside its rows."""

from pathlib import Path

from pydantic import ValidationError

from tailrace.latency.cost import BadCost, Cost, Prices, cost
from tailrace.latency.report.markdown import markdown
from tailrace.latency.report.page import page
from tailrace.latency.report.told import told
from tailrace.latency.report.words import Language
from tailrace.latency.runs import Run, open_run

MARKDOWN, HTML = "report.md", "report.html"


def keep_reports(path: Path, language: Language = "en", prices: Prices | None = None) -> Path:
    """Write report.md and report.html into the run's folder; the path of the latter.

    Raises:
        BadRun: the folder holds no run that can be read.
        BadCost: the prices do not fit the run.

    """
    run = open_run(path)
    figures = told(run)
    found = None
    if figures is not None:
        found = cost(run, prices) if prices is not None else _planned(run)
    (path / MARKDOWN).write_text(markdown(run, figures, found, language), encoding="utf-8")
    (path / HTML).write_text(page(run, figures, found, language), encoding="utf-8")
    return path / HTML


def _planned(run: Run) -> Cost | None:
    """By the prices that the scenario names, where they fit what was measured."""
    try:
        return cost(run, Prices.model_validate(run.summary.plan["cost"]))
    except (KeyError, ValidationError, BadCost):
        return None
