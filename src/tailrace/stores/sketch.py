"""One bit per dimension: a small picture of many vectors that finds most of the nearest ones.

Vectors of real models share a large common part; the bits say on which side of the mean a vector lies, or
they would say little. What the sketch finds is compared again in full.
"""

import numpy as np
import numpy.typing as npt

from tailrace.stores.port import FloatArray

SKETCH_FROM = 50_000
"""Vectors from which a scan goes by the sketch."""

RESCORED_MIN = 400
"""Vectors that are compared in full after the sketch, at least."""

RESCORED_PER_HIT = 8
"""And for each hit that is asked for."""

_CHUNK = 20_000


class Sketch:
    """The sketch of a matrix that does not change."""

    def __init__(self, vectors: FloatArray) -> None:
        self._mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._spare = -len(self._mean) % 64
        packed = [self._pack(vectors[i : i + _CHUNK]) for i in range(0, len(vectors), _CHUNK)]
        self._columns = np.ascontiguousarray(np.concatenate(packed).T)  # read one after the other

    def _pack(self, vectors: FloatArray) -> npt.NDArray[np.uint64]:
        signs = np.pad(vectors > self._mean, ((0, 0), (0, self._spare)))
        return np.packbits(signs, axis=1).view(np.uint64)

    def nearest(
        self, query: FloatArray, count: int, counted: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """About the `count` nearest places among those that are counted, ascending."""
        differing = np.zeros(self._columns.shape[1], np.uint16)
        for column, word in zip(self._columns, self._pack(query[None, :])[0], strict=True):
            differing += np.bitwise_count(column ^ word)
        differing[~counted] = np.iinfo(np.uint16).max
        count = min(count, int(counted.sum()))
        if count <= 0:
            return np.empty(0, np.int64)
        return np.sort(np.argpartition(differing, count - 1)[:count]).astype(np.int64)
