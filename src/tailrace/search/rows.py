"""Rows of JSON or CSV as documents: strict about what it keeps, and clear about what is wrong.

Knows no file and no store.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tailrace.core.errors import InputError
from tailrace.stores.batches import check_document
from tailrace.stores.port import Document

FIELDS = tuple(field.name for field in fields(Document))
LIST_ITEMS_MAX = 64
"""Keywords or aliases of one document."""
YEARS = range(-3000, 3001)


class BadRow(InputError):
    """A row is no document."""

    code = "bad-document"


def document_of(row: Any) -> Document:
    """The document that a row of JSON, or of CSV with lists between semicolons, says.

    An empty text is none; names that are not ours are mistakes.

    Raises:
        BadRow, BadDocument: with the field and what is wrong with it.

    """
    if not isinstance(row, Mapping):
        raise BadRow("a document must be a JSON object")
    unknown = [str(name) for name in row if name not in FIELDS]
    if unknown:
        raise BadRow(f"unknown field {unknown[0]!r}; the fields are {', '.join(FIELDS)}")
    made = Document(
        id=_needed(row, "id"),
        title=_needed(row, "title"),
        year=_year(row.get("year")),
        subtitle=_text(row, "subtitle"),
        author=_text(row, "author"),
        translator=_text(row, "translator"),
        publisher=_text(row, "publisher"),
        category=_text(row, "category"),
        description=_text(row, "description"),
        keywords=_list(row, "keywords"),
        aliases=_list(row, "aliases"),
    )
    check_document(made)
    return made


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRow(f"`{name}` must be a string")
    return value.strip() or None


def _needed(row: Mapping[str, Any], name: str) -> str:
    value = _text(row, name)
    if value is None:
        raise BadRow(f"`{name}` is missing")
    return value


def _year(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        year = int(value) if isinstance(value, str) else value
    except ValueError:
        year = None
    if not isinstance(year, int) or isinstance(year, bool) or year not in YEARS:
        raise BadRow(f"`year` must be a whole number from {YEARS[0]} to {YEARS[-1]}")
    return year


def _list(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name)
    if value is None:
        return ()
    items = value.split(";") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise BadRow(f"`{name}` must be a list of strings")
    kept = tuple(dict.fromkeys(item.strip() for item in items if item.strip()))
    if len(kept) > LIST_ITEMS_MAX:
        raise BadRow(f"`{name}` has {len(kept)} items; the limit is {LIST_ITEMS_MAX}")
    return kept
