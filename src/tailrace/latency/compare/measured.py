"""What is compared: the folder of a run, or a file of rows as `tailrace probe --out` writes it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace.latency.runs import BadRun, Summary, list_runs, open_run
from tailrace.latency.runs.folder import ROWS_MAX
from tailrace.wire.record import BadRow, Row

NAMED = 6
"""Runs that are named where one had to be chosen."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows with whatever is known of how they came about."""

    name: str
    rows: tuple[Row, ...]
    summary: Summary | None = None
    """None for a file of rows."""
    env: dict[str, Any] = field(default_factory=dict)


def measured(path: Path) -> Measured:
    """Read a run's folder or a file of rows; raises BadRun with one sentence."""
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        raise BadRun(f"there is no run at {path}; see what there is with: tailrace runs")
    return Measured(path.stem, tuple(_rows(path)))


def _folder(path: Path) -> Measured:
    if not (path / "summary.json").exists():
        within = [listed.path.relative_to(path) for listed in list_runs(path)]
        if within:
            some = ", ".join(map(str, within[:NAMED]))
            raise BadRun(f"{path} holds {len(within)} runs; name one of them: {some}")
    run = open_run(path)
    if reasons := run.summary.validity.reasons:
        raise BadRun(f"{path} is not valid ({'; '.join(reasons)}): measure it again")
    return Measured(run.name, run.rows, run.summary, run.env)


def _rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if number > ROWS_MAX:
                    raise BadRun(f"{path} has more than the {ROWS_MAX:,} rows that a run may have")
                if line.strip():
                    rows.append(Row.from_line(line))
    except BadRow as bad:
        raise BadRun(f"line {len(rows) + 1} of {path} is no row: {bad}") from None
    except OSError as error:
        raise BadRun(f"{path} cannot be read: {error.strerror}") from None
    if not rows:
        raise BadRun(f"{path} holds no rows: nothing was measured")
    return rows
