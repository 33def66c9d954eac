"""All cases of a scenario side by side, and the steps of a staircase, as Markdown and as plain cells."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailrace.bench.session import Outcome
from tailrace.latency.quantiles import percentile
from tailrace.latency.report.markdown import rows
from tailrace.latency.report.table import estimate
from tailrace.latency.runs import Summary, open_run
from tailrace.wire.record import Row

OVERVIEW = "overview.md"
CASE_HEADS = (
    "case",
    "n",
    "refused",
    "errors",
    "cut off",
    "req/s",
    "p50",
    "p95",
    "p99",
    "leads",
    "valid",
)
STEP_HEADS = ("step", "n", "refused", "errors", "cut off", "p50", "p95")


def case_cells(summary: Summary) -> list[str]:
    """One line of the cases."""
    s = summary
    figures = [None] * 3 if s.total is None else [s.total.p50, s.total.p95, s.total.p99]
    rate = s.load.answered_per_s if s.load is not None else None
    return [
        s.case or s.scenario,
        str(s.n),
        *(str(s.outcomes.get(name, 0)) for name in ("refused", "error")),
        str(s.censored),
        "-" if rate is None else f"{rate:,.1f}",
        *("-" if value is None else f"{value:,.1f}" for value in figures),
        f"{s.leading} {s.parts[s.leading].share:.0%}" if s.leading else "-",
        "yes" if s.validity.valid else "no",
    ]


def step_cells(measured: Sequence[Row]) -> list[list[str]]:
    """One line for each step of a staircase; empty where there are none."""
    steps = defaultdict(list)
    for row in measured:
        if "step" in row.detail and row.phase == "steady":
            steps[float(row.detail["step"])].append(row)
    return [_step(step, steps[step]) for step in sorted(steps)]


def _step(step: float, found: Sequence[Row]) -> list[str]:
    served = [row for row in found if row.outcome == "ok" or row.censored]
    counts = [sum(row.outcome == name for row in found) for name in ("refused", "error")]
    cut = np.array([row.censored for row in served], dtype=np.bool_)
    walls = [row.wall_ms for row in served]
    quantiles = [estimate(percentile(walls, q, cut)) if walls else "-" for q in (0.5, 0.95)]
    return [f"{step:g}", str(len(served)), *map(str, counts), str(int(cut.sum())), *quantiles]


def keep_overview(outcome: Outcome) -> Path | None:
    """Write overview.md into the session's folder where there is more than one line to see."""
    lines = [f"# {outcome.folder.name}", ""]
    stairs = [
        (summary, cells)
        for path, summary in outcome.runs
        if summary.n and (cells := step_cells(open_run(path).rows))
    ]
    if len(outcome.runs) < 2 and not stairs:
        return None
    lines += rows(CASE_HEADS, [case_cells(summary) for _, summary in outcome.runs])
    if outcome.aa_noise is not None:
        lines += ["", f"The same twice (A/A) differs by {outcome.aa_noise:.1%} at p50."]
    for summary, cells in stairs:
        lines += ["", f"## {summary.case or summary.scenario}, step by step", ""]
        lines += rows(STEP_HEADS, cells)
    lines += [
        f"- not valid: {summary.case or summary.scenario}: {why}"
        for _, summary in outcome.runs
        for why in summary.validity.reasons
    ]
    path = outcome.folder / OVERVIEW
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
