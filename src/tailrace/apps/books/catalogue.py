"""The catalogue that ships with the product: books, editions of one work, other names, dev queries."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tailrace.search.aliases import with_editions
from tailrace.search.rows import document_of
from tailrace.stores.port import Document

DATA = Path(str(files("tailrace.apps.books").joinpath("data")))
QUERIES = DATA / "queries_dev.jsonl"


def shipped_documents() -> list[Document]:
    """All books, each with the other names it is known by: original titles, spellings, other editions."""
    names = {row["id"]: row["aliases"] for row in _rows("names.jsonl")}
    books = [document_of({**row, "aliases": names.get(row["id"])}) for row in _rows("books.jsonl")]
    works: dict[str, list[str]] = json.loads((DATA / "editions.json").read_text(encoding="utf-8"))
    return with_editions(books, works.values())


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
