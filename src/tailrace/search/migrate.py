"""From one space to another: the new one is filled beside the one that is searched, then takes its place.

Searches and writes go on in the space before until the switch. What was filled stays filled, so a fill
that was stopped goes on where it stopped. Knows no model, no HTTP and no terminal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.search.ingest import BATCH_DOCUMENTS, EmbedDocuments
from tailrace.search.passages import passage
from tailrace.stores.errors import StoreError, UnknownSpace
from tailrace.stores.port import Space, Store, StoredSpace, Vectors

STALLED_MAX = 20
"""Batches in a row of which the store takes nothing, before a fill gives up."""


@dataclass(frozen=True, slots=True)
class Filled:
    """How far a fill has come."""

    taken: int
    """Vectors written by this fill."""
    vectors: int
    """Vectors in the space."""
    documents: int
    """Documents in the store."""


def fill(store: Store, space: Space, embed: EmbedDocuments) -> Iterator[Filled]:
    """Give every document a vector in the space; yields after each batch.

    A document that changes meanwhile is met again. Nothing that is searched is touched.

    Raises:
        StoreError, InputError: of the batch that failed; those before it are written.

    """
    began = _vectors(store, space)
    taken = stalled = 0
    while batch := store.missing(space, BATCH_DOCUMENTS):
        rows = embed([passage(document) for document in batch])
        now = store.put_vectors(batch, Vectors(space, rows))
        taken += now
        stalled = 0 if now else stalled + 1
        if stalled == STALLED_MAX:
            raise StoreError(f"{batch[0].id!r} and others take no vector; ingest them again")
        yield Filled(taken, began + taken, store.stats().documents)


def take_over(store: Store, space: Space, embed: EmbedDocuments) -> Iterator[Filled]:
    """Make a filled space the active one, at once.

    What was written while it was being judged is filled in before, and what came in between, after.
    """
    yield from fill(store, space, embed)
    store.switch(space)
    yield from fill(store, space, embed)


def roll_back(store: Store, fingerprint: str | None = None) -> StoredSpace:
    """Go back to the space that was kept, or of several to the one named; returns it as it is now.

    Raises UnknownSpace where there is none, or more than one and none is named.
    """
    kept = [held for held in store.spaces() if held.state == "kept"]
    if fingerprint is not None:
        chosen = named(kept, fingerprint)
    elif len(kept) == 1:
        chosen = kept[0]
    elif kept:
        raise UnknownSpace(f"several spaces are kept, name one with --space: {_listed(kept)}")
    else:
        raise UnknownSpace("no space is kept, so there is no way back")
    store.switch(chosen.space)
    return named(store.spaces(), chosen.space.fingerprint)


def named(held: Sequence[StoredSpace], fingerprint: str) -> StoredSpace:
    """The space of that fingerprint; raises UnknownSpace with those there are."""
    for one in held:
        if one.space.fingerprint == fingerprint:
            return one
    raise UnknownSpace(f"there is no space {fingerprint} to be had; there are: {_listed(held)}")


def _listed(held: Sequence[StoredSpace]) -> str:
    return ", ".join(f"{one.space.fingerprint} ({one.space.model})" for one in held) or "none"


def _vectors(store: Store, space: Space) -> int:
    return next((held.vectors for held in store.spaces() if held.space == space), 0)
