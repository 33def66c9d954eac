"""Looking at what a caller hands in before anything is written or compared."""

from collections.abc import Sequence

import numpy as np

from tailrace.stores.errors import (
    AnalyzerMismatch,
    BadDocument,
    BadVectors,
    CanaryMismatch,
    SpaceMismatch,
)
from tailrace.stores.port import Canary, Document, FloatArray, Space, Vectors

ID_CHARS_MAX = 200
"""Characters of a document's id."""

FIELD_CHARS_MAX = 20_000
"""Characters of one field of a document."""

CANARY_COSINE = 0.999
"""How alike the canary's vector of today and the stored one must be."""


def last_of_each(
    documents: Sequence[Document], vectors: Sequence[Vectors]
) -> tuple[list[Document], list[Vectors]]:
    """The batch with every id once: of one given twice the last counts. Raises BadDocument, BadVectors."""
    for document in documents:
        check_document(document)
    for batch in vectors:
        check_vectors(batch, len(documents))
    last = {document.id: index for index, document in enumerate(documents)}
    if len(last) == len(documents):
        return list(documents), list(vectors)
    keep = sorted(last.values())
    return [documents[i] for i in keep], [Vectors(v.space, v.rows[keep]) for v in vectors]


def check_document(document: Document) -> None:
    """Raises BadDocument for what no store can keep."""
    if not document.id or len(document.id) > ID_CHARS_MAX:
        raise BadDocument(f"a document's id has 1 to {ID_CHARS_MAX} characters")
    texts = (document.id, *document.texts().values())
    if any(len(text) > FIELD_CHARS_MAX for text in texts):
        raise BadDocument(f"a field of {document.id!r} has more than {FIELD_CHARS_MAX} characters")
    for text in texts:
        if "\0" in text or (not text.isprintable() and not _encodable(text)):
            raise BadDocument(
                f"{document.id!r} holds characters that are no text (NUL, lone surrogates)"
            )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_vectors(batch: Vectors, count: int) -> None:
    """Raises BadVectors unless there are `count` finite float32 rows of the space's dimension."""
    expected = (count, batch.space.dimension)
    if batch.rows.shape != expected or batch.rows.dtype != np.float32:
        raise BadVectors(f"expected float32 {expected}, got {batch.rows.dtype} {batch.rows.shape}")
    if not np.isfinite(batch.rows).all():
        raise BadVectors("a vector is not finite")


AGAIN = "fill a new store: TAILRACE__STORE__PATH=NEW.db tailrace books ingest FILE"
"""What to run where one and the same space no longer gives the same vectors."""


def mismatch(asked: Space, active: Space | None) -> SpaceMismatch:
    """The error for vectors of a space that the store does not search, with what to run."""
    held = f"{active.model} ({active.fingerprint})" if active else "none"
    return SpaceMismatch(
        f"the vectors are of {asked.model} ({asked.fingerprint}), the store's space is {held}; "
        f"to change the model run: tailrace books migrate --to {asked.model}"
    )


def check_analyzer(held: str, own: str) -> None:
    """Raises AnalyzerMismatch where the store has been indexed by another analyser meanwhile."""
    if held != own:
        raise AnalyzerMismatch(
            f"the store is indexed by {held} now, this process writes terms of {own}; "
            "start it again with the store's `analyzer`"
        )


def check_found(batches: Sequence[Vectors], active: Space | None) -> None:
    """Raises SpaceMismatch where vectors are given, but none that a search would find."""
    if batches and not any(batch.space == active for batch in batches):
        raise mismatch(batches[0].space, active)


def check_canary(space: Space, canary: Canary, today: FloatArray) -> float:
    """The cosine of the canary's vector then and now; raises CanaryMismatch below CANARY_COSINE."""
    if today.shape != canary.vector.shape:
        raise CanaryMismatch(
            f"{space.model} now gives {today.shape[-1]} dimensions, the store has "
            f"{canary.vector.shape[-1]}; {AGAIN}"
        )
    lengths = float(np.linalg.norm(today) * np.linalg.norm(canary.vector))
    cosine = float(today @ canary.vector) / lengths if lengths else 0.0
    if not cosine > CANARY_COSINE:
        raise CanaryMismatch(
            f"{space.model} no longer gives the vectors that the store holds (cosine {cosine:.4f} "
            f"of {CANARY_COSINE}); {AGAIN}"
        )
    return cosine
