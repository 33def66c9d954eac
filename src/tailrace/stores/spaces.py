"""Spaces as rows of a table: how they are written down and read again."""

import json
from dataclasses import asdict
from typing import get_args

import numpy as np

from tailrace.stores.port import Canary, FloatArray, Space, SpaceState, StoredSpace


def to_body(space: Space) -> str:
    """The whole space as JSON."""
    return json.dumps(asdict(space), ensure_ascii=True, sort_keys=True)


def from_body(body: str) -> Space:
    """The space that `to_body` wrote."""
    return Space(**json.loads(body))


def to_bytes(vector: FloatArray) -> bytes:
    """A vector as a table keeps it: little-endian float32."""
    return np.ascontiguousarray(vector, "<f4").tobytes()


def stored_space(
    body: str, state: str, text: str | None, vector: bytes | None, vectors: int
) -> StoredSpace:
    """A space as the port gives it, from the columns of its row."""
    canary = Canary(text, np.frombuffer(vector, "<f4")) if text is not None and vector else None
    known: dict[str, SpaceState] = {name: name for name in get_args(SpaceState)}
    return StoredSpace(from_body(body), known[state], canary, vectors)
