"""Other names by which people ask for a document, made at ingest by rules. Knows no query and no store."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tailrace.stores.port import Document


def with_editions(
    documents: Sequence[Document], works: Iterable[Collection[str]]
) -> list[Document]:
    """The documents, each with title and author of the other editions of its work as aliases."""
    by_id = {document.id: document for document in documents}
    others: dict[str, list[Document]] = {}
    for work in works:
        for id_ in work:
            others[id_] = [by_id[other] for other in work if other != id_ and other in by_id]
    return [_named(document, others.get(document.id, ())) for document in documents]


def _named(document: Document, editions: Sequence[Document]) -> Document:
    own = {document.title, document.author, *document.aliases}
    new = [name for other in editions for name in (other.title, other.author) if name]
    more = tuple(dict.fromkeys(name for name in new if name not in own))
    return replace(document, aliases=(*document.aliases, *more)) if more else document
