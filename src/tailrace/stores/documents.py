"""Documents as rows of a table: how they are written down and which columns filters look at."""

import json

from tailrace.stores.port import Document


def to_body(document: Document) -> str:
    """The whole document as JSON."""
    return json.dumps(document.fields(), ensure_ascii=False)


def from_body(body: str) -> Document:
    """The document that `to_body` wrote."""
    fields = json.loads(body)
    fields["keywords"] = tuple(fields["keywords"])
    fields["aliases"] = tuple(fields["aliases"])
    return Document(**fields)


def author_key(author: str | None) -> str:
    """An author as filters compare it: case and spaces do not count."""
    return "".join((author or "").casefold().split())
