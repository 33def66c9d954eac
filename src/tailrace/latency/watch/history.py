"""The history of a watch: one line of JSON per case and round, bounded, and whole after any end.

The first line names the schema and the question that is asked; a line that was being written when the power
went is dropped. Knows nothing of what the figures mean.
"""

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

SCHEMA = 1
"""Grows when a reader of the older lines would misread the newer ones."""
POINTS_MAX = 5_000
"""The most lines that are kept; a tenth more may stand in the file until it is written anew."""
FILE = "history.jsonl"


class BadHistory(ValueError):
    """A history that cannot be used: why, in one sentence."""


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Level(_Shape):
    """One part, or the whole, in one run; milliseconds. None where too few rows could tell."""

    share: float = 1.0
    p50: float | None = None
    p95: float | None = None


class Expired(_Shape):
    """Why an answer no longer holds."""

    why: str
    """moved, changed, stale"""
    text: str
    since: float
    """From when on the history speaks of the new state, in seconds since 1970."""


class Point(_Shape):
    """One case of one round."""

    at: float
    """When the round began, in seconds since 1970."""
    case: str = ""
    gap: str | None = None
    """Why nothing was measured; then there are no figures."""
    run: str | None = None
    """The run's folder, below the watch's."""
    n: int = 0
    leader: str | None = None
    best_before: str | None = None
    total: Level | None = None
    parts: Mapping[str, Level] = Field(default_factory=dict)
    expired: Sequence[Expired] = ()
    """What this round was the first to tell."""


class History:
    """An open history; one process at a time. As a context it is closed."""

    def __init__(self, folder: Path, question: Mapping[str, Any], points_max: int = POINTS_MAX):
        """Open or begin; raises BadHistory."""
        self.folder = folder
        self.question = dict(question)
        self.points: list[Point] = []
        self._max = points_max
        self._path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("ab")
        except OSError as error:
            raise BadHistory(f"no history can be kept in {folder}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file = self._opened()
        except BlockingIOError:
            self._lock.close()
            raise BadHistory(
                f"another watch is at work in {folder}; give this one a --name"
            ) from None
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._lock.close()

    def append(self, point: Point) -> None:
        """Keep a point, on disk when this returns."""
        self._file.write(_line(point.model_dump(exclude_none=True)))
        os.fsync(self._file.fileno())
        self.points.append(point)
        if len(self.points) > self._max * 11 // 10:
            self.points = self.points[-self._max :]
            self._file.close()
            self._write_anew()
            self._file = self._path.open("ab", buffering=0)

    def of(self, case: str) -> list[Point]:
        """The points of one case, oldest first."""
        return [point for point in self.points if point.case == case]

    def _opened(self) -> IO[bytes]:
        if self._path.exists():
            self._read()
        else:
            self._write_anew()
        return self._path.open("ab", buffering=0)

    def _read(self) -> None:
        whole, _, torn = self._path.read_bytes().rpartition(b"\n")
        lines = whole.split(b"\n")
        self._check_head(lines[0])
        for number, line in enumerate(lines[1:], 2):
            try:
                self.points.append(Point.model_validate_json(line))
            except ValidationError as bad:
                what = bad.errors()[0]["msg"]
                raise BadHistory(f"line {number} of {self._path} is damaged: {what}") from None
        self.points = self.points[-self._max :]
        if torn:
            os.truncate(self._path, len(whole) + 1)

    def _check_head(self, line: bytes) -> None:
        try:
            head = orjson.loads(line)
            schema, question = head["schema"], head["question"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise BadHistory(f"{self._path} is no history of a watch") from None
        if not isinstance(schema, int) or schema > SCHEMA:
            raise BadHistory(
                f"{self._path} was written by a newer tailrace (schema {schema}; this one reads {SCHEMA})"
            )
        if question != orjson.loads(orjson.dumps(self.question)):
            raise BadHistory(
                f"{self._path} is of another question: give this watch another --name, or ask as before"
            )

    def _write_anew(self) -> None:
        draft = self._path.with_suffix(".part")
        lines = [_line({"schema": SCHEMA, "question": self.question})]
        lines += [_line(point.model_dump(exclude_none=True)) for point in self.points]
        draft.write_bytes(b"".join(lines))
        draft.replace(self._path)


def _line(body: Mapping[str, Any]) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
