"""Which space the vectors of an embedding model live in, told from the model, and whether it is searched."""

from collections.abc import Mapping

from tailrace.models.port import ModelInfo
from tailrace.search.passages import VERSION
from tailrace.stores.batches import mismatch
from tailrace.stores.port import Space, Store

CANARY_TEXT = "어느 비 오는 밤, 낡은 서점에서 The Little Prince를 펼쳤다. 1943"
"""Embedded when a space is made and at every start: another vector is another model."""


def space_of(
    info: ModelInfo, prompts: Mapping[str, str], *, dimension: int, pooling: str = "mean"
) -> Space:
    """The space of a model whose vectors are brought to unit length."""
    return Space(
        model=info.name,
        file_hash=info.fingerprint,
        quantisation=info.quantisation,
        query_prefix=prompts.get("query", ""),
        document_prefix=prompts.get("passage", ""),
        pooling=pooling,
        normalised=True,
        dimension=dimension,
        tokenizer=f"{info.fingerprint}/passage-{VERSION}",
    )


def check_active(store: Store, space: Space) -> None:
    """Raises SpaceMismatch, with what to run, unless the store searches this space."""
    active = store.space()
    if active is None or active.space != space:
        raise mismatch(space, active.space if active else None)
