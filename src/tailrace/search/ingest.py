"""Documents into a store with their vectors, batch by batch: each batch whole or not at all.

What is in the store already as it is, vector and all, is passed over; so an ingest that was killed goes
on where it stopped, and one that is run twice changes nothing. Knows no file, no HTTP and no lane.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tailrace.search.passages import passage
from tailrace.search.spaces import check_active
from tailrace.stores.port import Document, FloatArray, Space, Store, Vectors

BATCH_DOCUMENTS = 128
"""Documents that are written together."""

EmbedDocuments = Callable[[Sequence[str]], FloatArray]
"""Unit vectors of passages, one row each."""


@dataclass(slots=True)
class Ingested:
    """What has been done so far."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0

    @property
    def documents(self) -> int:
        """All of them."""
        return self.inserted + self.updated + self.unchanged


def batches(documents: Iterable[Document], size: int = BATCH_DOCUMENTS) -> Iterator[list[Document]]:
    """The documents in lists of `size`."""
    source = iter(documents)
    while batch := list(islice(source, size)):
        yield batch


def ingest(
    store: Store, space: Space, embed: EmbedDocuments, documents: Iterable[Document]
) -> Iterator[Ingested]:
    """Write all documents; yields the count after each batch.

    Raises:
        SpaceMismatch: the space is not the active one; nothing is embedded for it.
        StoreError, InputError: of the batch that failed; those before it are written.

    """
    done = Ingested()
    for batch in batches(documents):
        check_active(store, space)
        new = store.unfinished(batch, space)
        if new:
            rows = embed([passage(document) for document in new])
            written = store.upsert(new, Vectors(space, rows))
            done.inserted += written.inserted
            done.updated += written.updated + written.unchanged
        done.unchanged += len(batch) - len(new)
        yield done
