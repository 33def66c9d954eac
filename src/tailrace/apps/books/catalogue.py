"""The catalogue that ships with the product: books, editions of one work, other names, dev queries."""

import json
from importlib.resources import files
from pathlib import Path

from tailrace.search.aliases import with_editions
from tailrace.search.rows import document_of
from tailrace.stores.port import Document

DATA = Path(str(files("tailrace.apps.books").joinpath("data")))
QUERIES = DATA / "queries_dev.jsonl"


def shipped_documents() -> list[Document]:
    """All books, each with the names it is known by in other editions."""
    lines = (DATA / "books.jsonl").read_text(encoding="utf-8").splitlines()
    editions: dict[str, list[str]] = json.loads(
        (DATA / "editions.json").read_text(encoding="utf-8")
    )
    return with_editions([document_of(json.loads(line)) for line in lines], editions.values())
