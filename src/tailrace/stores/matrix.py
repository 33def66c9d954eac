"""All vectors of a space in memory, and the exact scan over them.

A base that may be mapped from a file and is never written, and a tail that grows. Readers take a view;
what is put or dropped afterwards makes a new one. Knows no table: who owns it feeds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tailrace.stores.port import FloatArray
from tailrace.stores.sketch import RESCORED_MIN, RESCORED_PER_HIT, SKETCH_FROM, Sketch

RowArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

GATHER_SHARE = 0.25
"""Up to this share of allowed rows they are gathered before the product, beyond it all are multiplied."""

SCORE_STEP = 1e-6
"""Scores closer than this are equal: the same vector may differ in its last bits from place to place."""


class Candidate(NamedTuple):
    """A row and its score, rounded to SCORE_STEP."""

    row: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One state of the matrix. `alive` says which places of base and tail still count."""

    base: FloatArray
    tail: FloatArray
    rows: RowArray
    alive: BoolArray
    sketch: Sketch | None = None

    def __len__(self) -> int:
        return int(self.alive.sum())

    def places(self, allowed: RowArray | None) -> RowArray | None:
        """Where the allowed rows stand, in order; None: everywhere."""
        if allowed is None:
            return None
        return np.flatnonzero(self.alive & np.isin(self.rows, allowed))

    def take(self, places: RowArray) -> FloatArray:
        """The vectors at some places, ascending."""
        cut = int(np.searchsorted(places, len(self.base)))
        if cut == len(places):
            return self.base[places]
        found = (self.base[places[:cut]], self.tail[places[cut:] - len(self.base)])
        return np.concatenate(found)


class Matrix:
    """The vectors of one space by document row; asked under the owner's lock, except for its views."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._buffer = np.empty((0, dimension), np.float32)
        self._place: dict[int, int] = {}
        self.view = View(self._buffer, self._buffer, np.empty(0, np.int64), np.empty(0, np.bool_))

    def load(self, rows: RowArray, vectors: FloatArray) -> None:
        """Begin again from these; `vectors` are kept as they are, not copied."""
        self._buffer = np.empty((0, self._dimension), np.float32)
        self._place = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        sketch = Sketch(vectors) if len(vectors) >= SKETCH_FROM else None
        self.view = View(vectors, self._buffer, rows, np.ones(len(rows), np.bool_), sketch)

    def change(self, dropped: Sequence[int], rows: Sequence[int], vectors: FloatArray) -> None:
        """Forget `dropped`, then put `vectors` at `rows` (new or replacing)."""
        view = self.view
        alive = np.concatenate([view.alive, np.ones(len(rows), np.bool_)])
        for row in (*dropped, *rows):
            place = self._place.pop(row, None)
            if place is not None:
                alive[place] = False
        used = len(view.tail)
        if used + len(rows) > len(self._buffer):
            grown = np.empty((max(256, 2 * (used + len(rows))), self._dimension), np.float32)
            grown[:used] = view.tail
            self._buffer = grown
        self._buffer[used : used + len(rows)] = vectors
        first = len(view.base) + used
        self._place.update(zip(rows, range(first, first + len(rows)), strict=True))
        self.view = View(
            view.base,
            self._buffer[: used + len(rows)],
            np.concatenate([view.rows, np.asarray(rows, np.int64)]),
            alive,
            view.sketch,
        )

    def tidy(self) -> tuple[RowArray, FloatArray]:
        """The rows and vectors that count, as a fresh base."""
        places = np.flatnonzero(self.view.alive)
        return self.view.rows[places], self.view.take(places)

    def vector(self, row: int) -> FloatArray | None:
        """The vector of one document row."""
        place = self._place.get(row)
        if place is None:
            return None
        return np.asarray(self.view.take(np.asarray([place]))[0], np.float32)

    @property
    def waste(self) -> int:
        """Places that no longer count, and the tail: what a fresh base would tidy."""
        return len(self.view.alive) - len(self) + len(self.view.tail)

    def __len__(self) -> int:
        return len(self._place)


def scan(
    view: View, queries: FloatArray, limit: int, allowed: RowArray | None
) -> tuple[list[list[Candidate]], int, bool]:
    """For each query the best `limit` and whatever ties with the last.

    Also how many vectors were compared in full, and whether that was every one that is allowed.
    """
    places = view.places(allowed)
    if places is not None and len(places) <= GATHER_SHARE * len(view.rows):
        scores = products(queries, view.take(places))
        rows = view.rows[places]
    elif view.sketch is not None:
        return *_sketched(view, view.sketch, queries, limit, places), False
    else:
        parts = [products(queries, part) for part in (view.base, view.tail)]
        scores = np.concatenate(parts, axis=1)
        counted = view.alive if places is None else np.zeros_like(view.alive)
        if places is not None:
            counted[places] = True
        if not counted.all():
            scores[:, ~counted] = -np.inf
        rows = view.rows
    return [best(line, rows, limit) for line in scores], scores.size, True


def _sketched(
    view: View, sketch: Sketch, queries: FloatArray, limit: int, places: RowArray | None
) -> tuple[list[list[Candidate]], int]:
    """The scan by the sketch of the base, the tail being compared in full."""
    counted = view.alive
    if places is not None:
        counted = np.zeros_like(view.alive)
        counted[places] = True
    size = len(view.base)
    tail = np.flatnonzero(counted[size:]) + size
    found, compared = [], 0
    for query in queries:
        many = max(RESCORED_MIN, RESCORED_PER_HIT * limit)
        near = np.concatenate([sketch.nearest(query, many, counted[:size]), tail])
        compared += len(near)
        scores = products(query[None, :], view.take(near))[0]
        found.append(best(scores, view.rows[near], limit))
    return found, compared


def products(queries: FloatArray, vectors: FloatArray) -> FloatArray:
    """Inner products, one line per query.

    A single query is bound by memory, so BLAS's threads gain nothing, and on a busy machine waiting for
    them costs milliseconds; einsum stays on this thread.
    """
    if len(queries) == 1:
        return np.asarray(np.einsum("ij,j->i", vectors, queries[0])[None, :], np.float32)
    return queries @ vectors.T


def best(scores: FloatArray, rows: RowArray, limit: int) -> list[Candidate]:
    """The best `limit` and whatever ties with the last of them, best first; -inf does not count."""
    if limit <= 0 or not len(scores):
        return []
    if limit < len(scores):
        bound = scores[np.argpartition(scores, -limit)[-limit:]].min() - SCORE_STEP
        chosen = np.flatnonzero((scores >= bound) & (scores > -np.inf))
    else:
        chosen = np.flatnonzero(scores > -np.inf)
    near = np.round(scores[chosen].astype(np.float64), 6)
    order = np.argsort(-near, kind="stable")
    return list(map(Candidate, rows[chosen][order].tolist(), near[order].tolist()))
