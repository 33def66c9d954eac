"""One folder per run: rows.jsonl, summary.json, env.json, and the reports made of them.

Rows are appended as they come and survive whatever ends the run. What cannot be read is a BadRun, never a
wrong number. Knows nothing of how a run is made.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from pydantic import ValidationError

from tailrace.latency.runs.environment import fingerprint
from tailrace.latency.runs.errors import BadRun
from tailrace.latency.runs.summary import (
    SCHEMA,
    UNFINISHED,
    Head,
    Load,
    Summary,
    stale,
    summarize,
)
from tailrace.wire.record import IDENTITY_MS, BadRow, Row

ROWS, SUMMARY, ENV = "rows.jsonl", "summary.json", "env.json"
DEFAULT_ROOT = Path("runs")
ROWS_MAX = 2_000_000
"""The most rows of one run."""
LISTED_MAX = 1_000
"""The most runs that one listing shows."""
DEPTH_MAX = 3
"""How far below its root a listing looks."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it was kept."""

    path: Path
    rows: tuple[Row, ...]
    summary: Summary
    env: dict[str, Any]

    @property
    def name(self) -> str:
        """The folder's name, by which people speak of it."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of a listing: a folder, and its summary or what is wrong with it."""

    path: Path
    summary: Summary | None
    trouble: str | None = None

    def stale(self, today: date) -> bool:
        """Whether it is past its best-before date."""
        return self.summary is not None and stale(self.summary, today)


def new_folder(root: Path, name: str, now: datetime | None = None) -> Path:
    """A folder that does not exist yet, named after the moment and `name`; it is made."""
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H%M%SZ")
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    for extra in ("", *(f".{number}" for number in range(2, 100))):
        path = root / f"{moment}-{safe}{extra}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise BadRun(f"no run can be kept in {root}: {error.strerror}") from None
        return path
    raise BadRun(f"there are a hundred runs of this second in {root}")


def named_folder(root: Path, name: str) -> Path:
    """A folder of just this name, which must not exist yet; it is made. Raises BadRun."""
    if re.fullmatch(r"\w[\w.-]*", name) is None:
        raise BadRun(f"{name!r} is no name for a run: letters, digits, dots and dashes make one")
    path = root / name
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise BadRun(f"there is already something at {path}; choose another name") from None
    except OSError as error:
        raise BadRun(f"no run can be kept in {root}: {error.strerror}") from None
    return path


class RunWriter:
    """Keeps a run while it is being measured; as a context, what is left of it is closed."""

    def __init__(self, path: Path, head: Head, env: dict[str, Any] | None = None) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if (path / SUMMARY).exists():
            raise BadRun(f"{path} already holds a run; choose another folder")
        self.path = path
        self.head = head
        self.rows: list[Row] = []
        self.env = fingerprint() if env is None else env
        _write(path / ENV, self.env)
        _write(path / SUMMARY, summarize(head, [], reasons=[UNFINISHED]))
        self._file = (path / ROWS).open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def append(self, *rows: Row) -> None:
        """Keep rows, on disk when this returns; raises BadRun for more than ROWS_MAX."""
        if len(self.rows) + len(rows) > ROWS_MAX:
            raise BadRun(f"a run has at most {ROWS_MAX:,} rows")
        self._file.write(b"".join(row.to_line() for row in rows))
        self.rows.extend(rows)

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Put other rows in place of all that were kept: the same requests, judged anew."""
        draft = self.path / f"{ROWS}.part"
        draft.write_bytes(b"".join(row.to_line() for row in rows))
        self._file.close()
        draft.replace(self.path / ROWS)
        self._file = (self.path / ROWS).open("ab", buffering=0)
        self.rows = list(rows)

    def tell_model(self, model: str) -> None:
        """Note the fingerprint of the model, which is known once the server has answered."""
        self.env = {**self.env, "model": model}
        _write(self.path / ENV, self.env)

    def finish(
        self,
        *,
        load: Load | None = None,
        reasons: Sequence[str] = (),
        notes: Sequence[str] = (),
        ended: datetime | None = None,
    ) -> Summary:
        """Write the summary over all rows; `reasons` make the run invalid."""
        ended = ended or datetime.now(UTC)
        made = summarize(self.head, self.rows, ended=ended, load=load, reasons=reasons, notes=notes)
        _write(self.path / SUMMARY, made)
        return made


def open_run(path: Path | str) -> Run:
    """Read a run's folder; raises BadRun with one sentence for whatever is wrong with it."""
    path = Path(path)
    summary = _summary(path)
    rows = tuple(_rows(path / ROWS))
    if not rows:
        raise BadRun(f"{path} holds no rows: nothing was measured")
    if summary.validity.reasons and UNFINISHED in summary.validity.reasons:
        summary = summarize(summary, rows, reasons=[UNFINISHED])
    try:
        env = orjson.loads((path / ENV).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        env = None
    if not isinstance(env, dict):
        raise BadRun(f"{path / ENV} is missing or no JSON object: the folder is not whole")
    return Run(path, rows, summary, env)


def refigure(run: Run, keep: Callable[[Row], bool]) -> Run:
    """The same run with some of its rows only, and the figures of those."""
    rows = tuple(row for row in run.rows if keep(row))
    kept = run.summary
    summary = summarize(kept, rows, ended=kept.ended, load=kept.load, reasons=kept.validity.reasons)
    return Run(run.path, rows, summary, run.env)


def list_runs(root: Path | str = DEFAULT_ROOT) -> list[Listed]:
    """The runs below `root`, newest first; a folder that cannot be read is listed with its trouble."""
    root = Path(root)
    if not root.is_dir():
        raise BadRun(f"there is no folder {root}; keep a run there first, or name another")
    found = [_listed(path.parent) for path in _below(root, 0)]
    found.sort(key=lambda one: _when(one.summary), reverse=True)
    return found[:LISTED_MAX]


def _below(folder: Path, depth: int) -> Iterable[Path]:
    if (folder / SUMMARY).is_file():
        yield folder / SUMMARY
    elif (folder / ROWS).is_file():
        yield folder / ROWS
    if depth < DEPTH_MAX:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.name.startswith("."):
                yield from _below(below, depth + 1)


def _listed(path: Path) -> Listed:
    try:
        summary = _summary(path)
        if UNFINISHED in summary.validity.reasons:
            summary = open_run(path).summary
        return Listed(path, summary)
    except BadRun as bad:
        return Listed(path, None, str(bad))


def _when(summary: Summary | None) -> datetime:
    return summary.began if summary is not None else datetime.min.replace(tzinfo=UTC)


def _summary(path: Path) -> Summary:
    if not path.is_dir():
        raise BadRun(f"there is no run at {path}; see what there is with: tailrace runs")
    try:
        body = orjson.loads((path / SUMMARY).read_bytes())
    except OSError:
        raise BadRun(f"{path} is no run: it holds no {SUMMARY}") from None
    except orjson.JSONDecodeError as error:
        raise BadRun(f"{path / SUMMARY} is no JSON ({error})") from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, int):
        raise BadRun(f"{path / SUMMARY} names no schema version: it is no summary of a run")
    if schema > SCHEMA:
        raise BadRun(
            f"{path} was written by a newer tailrace (schema {schema}; this one reads {SCHEMA})"
        )
    try:
        return Summary.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise BadRun(f"{path / SUMMARY} is damaged at {where}: {first['msg']}") from None


def _rows(path: Path) -> Iterable[Row]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        raise BadRun(f"{path.parent} is no run: it holds no {path.name}") from None
    last = len(lines) - 1
    if last > ROWS_MAX:
        raise BadRun(f"{path} has {last:,} rows; a run has at most {ROWS_MAX:,}")
    for number, line in enumerate(lines):
        if number == last:  # what was being written when the power went is no row
            return
        try:
            row = Row.from_line(line)
        except BadRow as bad:
            raise BadRun(f"line {number + 1} of {path} is no row: {bad}") from None
        if abs(row.miss_ms()) > IDENTITY_MS:
            raise BadRun(
                f"line {number + 1} of {path}: the parts miss the wall time by {row.miss_ms():.3f} ms"
            )
        yield row


def _write(path: Path, body: Summary | dict[str, Any]) -> None:
    """In one step: a reader never sees half a file."""
    plain = body.model_dump(mode="json", by_alias=True) if isinstance(body, Summary) else body
    draft = path.with_suffix(".part")
    draft.write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    draft.replace(path)
