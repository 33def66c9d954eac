"""The text of a document as the embedding model reads it. Knows no model.

Sentences and lists, as a person would introduce a book, do better than the bare fields one after the
other; figures in docs/explanation/search.md.
"""

from tailrace.stores.port import Document

VERSION = 1
"""Changes whenever the text of a document could: part of what makes two vectors comparable."""


def passage(document: Document) -> str:
    """Title, author, category, description and keywords as one short text.

    Aliases are left to the keyword leg: beside the description they blur the vector.
    """
    title = document.title
    if document.subtitle:
        title += f" - {document.subtitle}"
    parts = [
        title,
        document.author,
        (document.category or "").replace("/", ", "),
        document.description,
    ]
    sentences = [part.strip().rstrip(".") + "." for part in parts if part and part.strip()]
    return " ".join([*sentences, ", ".join(document.keywords)]).strip()
