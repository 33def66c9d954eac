"""Files of documents, row by row: JSONL or CSV, good rows and bad ones in their order. Knows no store."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tailrace.core.errors import InputError
from tailrace.search.rows import BadRow, document_of
from tailrace.stores.port import Document

Form = Literal["jsonl", "csv"]
SAID_CHARS_MAX = 300
"""Characters of a bad row that are kept."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a document, or why it is none."""

    line: int
    bytes: int
    """How far into the file it ends, about."""
    document: Document | None
    fault: str = ""
    text: str = ""
    """The row itself, where it is bad."""


def read_rows(lines: Iterable[str], form: Form) -> Iterator[Row]:
    """All rows of a file; blank lines are passed over. Never raises for what a row holds."""
    return _csv(lines) if form == "csv" else _jsonl(lines)


def _jsonl(lines: Iterable[str]) -> Iterator[Row]:
    size = 0
    for number, line in enumerate(lines, 1):
        size += len(line.encode("utf-8", "replace"))
        text = line.strip().removeprefix("\ufeff")
        if not text:
            continue
        try:
            yield Row(number, size, document_of(_json(text)))
        except InputError as error:
            yield Row(number, size, None, str(error), text[:SAID_CHARS_MAX])


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"is not JSON: {error}") from error


def _csv(lines: Iterable[str]) -> Iterator[Row]:
    size = 0

    def counted() -> Iterator[str]:
        nonlocal size
        for number, line in enumerate(lines):
            size += len(line.encode("utf-8", "replace"))
            yield line.removeprefix("\ufeff") if number == 0 else line

    reader = csv.DictReader(counted())
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(reader.line_num, size, None, f"is not CSV: {error}")
            continue
        try:
            if None in row:
                raise BadRow("has more columns than the first line names")
            yield Row(reader.line_num, size, document_of(row))
        except InputError as error:
            text = json.dumps(row, ensure_ascii=False, default=str)[:SAID_CHARS_MAX]
            yield Row(reader.line_num, size, None, str(error), text)
