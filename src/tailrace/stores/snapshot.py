"""A matrix as a file that is mapped into memory: rows, then float32 vectors.

The file is written once under a name of its own, made durable, and only then named by the table; it is
never changed. So whatever file the table names is whole and is what it was at that generation, and any
other file counts for nothing.
"""

import os
import secrets
from pathlib import Path

import numpy as np

from tailrace.stores.matrix import RowArray
from tailrace.stores.port import FloatArray

SNAPSHOT_FROM = 10_000
"""Vectors from which a matrix is kept as a file; fewer are read from the table as fast."""

_SUFFIX = ".matrix"


def write_snapshot(store: Path, rows: RowArray, vectors: FloatArray) -> str:
    """A new file beside the store; returns its tag."""
    tag = secrets.token_hex(8)
    with _path(store, tag).open("xb") as file:
        file.write(np.asarray([len(rows), vectors.shape[1]], "<i8").tobytes())
        file.write(np.ascontiguousarray(rows, "<i8").data)
        for start in range(0, len(vectors), 4096):
            file.write(np.ascontiguousarray(vectors[start : start + 4096], "<f4").data)
        file.flush()
        os.fsync(file.fileno())
    return tag


def map_snapshot(store: Path, tag: str, dimension: int) -> tuple[RowArray, FloatArray] | None:
    """The rows and the mapped vectors of a file; None where it is gone or of another size."""
    path = _path(store, tag)
    try:
        size = path.stat().st_size
        count = int(np.fromfile(path, "<i8", 1)[0])
        if size != 16 + count * (8 + 4 * dimension):
            return None
        rows = np.fromfile(path, "<i8", count, offset=16)
        vectors = np.memmap(path, "<f4", "r", 16 + 8 * count, (count, dimension))
    except (OSError, IndexError, ValueError):
        return None
    return rows, vectors


def remove_snapshots(store: Path, named: set[str]) -> None:
    """Remove the files that the table does not name."""
    for path in store.parent.glob(f"{store.name}-*{_SUFFIX}"):
        if path.name[len(store.name) + 1 : -len(_SUFFIX)] not in named:
            path.unlink(missing_ok=True)


def _path(store: Path, tag: str) -> Path:
    return store.with_name(f"{store.name}-{tag}{_SUFFIX}")
