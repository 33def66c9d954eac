"""The vector leg that runs in this process: a matrix kept up to date from a table.

The table is the truth. Every search first asks for the table's generation and reads what changed since;
so what any process wrote before is found. Shared by the stores; knows no SQL.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from tailrace.stores.batches import check_vectors, mismatch
from tailrace.stores.matrix import Candidate, Matrix, RowArray, View, scan
from tailrace.stores.port import Filter, FloatArray, Hit, Near, Space, VectorLeg, Vectors

WASTE_MIN = 4096
"""Vectors added or gone since the last tidying that always do."""

WASTE_SHARE = 0.25
"""And the share of all vectors, before the matrix is tidied."""

IDS_KEPT_MAX = 100_000
"""Ids of documents kept in mind by their rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What happened to a space's vectors: `whole` begins again, else drop first, then put."""

    generation: int
    whole: bool
    dropped: Sequence[int]
    rows: Sequence[int]
    vectors: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All vectors of a space at one generation."""

    generation: int
    rows: RowArray
    vectors: FloatArray


class Feed(Protocol):
    """What the matrix asks of the table behind it."""

    def generation(self) -> int:
        """Grows with every write that is visible."""

    def changes(self, space: Space, since: int) -> Change:
        """Everything after generation `since`, in one reading; -1: from the beginning."""

    def snapshot(self, space: Space) -> Snapshot | None:
        """What `keep` kept, if it still counts."""

    def keep(self, space: Space, snapshot: Snapshot) -> Snapshot:
        """Keep a snapshot for the next start, where that pays; returns the one to go on with."""

    def matching(self, where: Filter) -> RowArray | None:
        """Rows of the documents that a filter lets through; None: all of them."""

    def ids(self, rows: Sequence[int]) -> Mapping[int, str]:
        """The ids of rows; gone ones are left out."""

    def count(self, where: Filter) -> int:
        """How many documents a filter lets through."""


class Search(Protocol):
    """A space that is ready to be searched."""

    def __call__(
        self, queries: FloatArray, limit: int, *, without: int | None = None
    ) -> list[VectorLeg]:
        """The nearest documents for each query; `without` is a row to leave out."""


def asked_in(space: Space, search: Search) -> Near:
    """A search as the port gives it: by vectors of its space only."""

    def near(queries: Vectors, limit: int) -> list[VectorLeg]:
        check_vectors(queries, len(queries))
        if queries.space != space:
            raise mismatch(queries.space, space)
        return search(queries.rows, limit)

    return near


class MatrixLeg:
    """Searches one space."""

    def __init__(self, space: Space, feed: Feed) -> None:
        self._space = space
        self._feed = feed
        self._lock = threading.Lock()
        self._matrix = Matrix(space.dimension)
        self._generation = -1
        self._known: dict[int, str] = {}
        self.comparisons = 0

    def refresh(self) -> None:
        """Read what the table knows and the matrix does not."""
        with self._lock:
            if self._feed.generation() == self._generation:
                return
            if self._generation < 0 and (kept := self._feed.snapshot(self._space)):
                self._load(kept)
            change = self._feed.changes(self._space, self._generation)
            self._generation = change.generation
            if change.whole or not len(self._matrix):
                rows = np.asarray(change.rows, np.int64)
                self._load(self._kept(Snapshot(change.generation, rows, change.vectors)))
                return
            self._matrix.change(change.dropped, change.rows, change.vectors)
            if self._matrix.waste > WASTE_MIN + WASTE_SHARE * len(self._matrix):
                self._load(self._kept(Snapshot(change.generation, *self._matrix.tidy())))

    def _kept(self, snapshot: Snapshot) -> Snapshot:
        return self._feed.keep(self._space, snapshot)

    def _load(self, snapshot: Snapshot) -> None:
        self._matrix.load(snapshot.rows, snapshot.vectors)
        self._generation = snapshot.generation

    def near(self, where: Filter) -> Search:
        """All that was written before and fits a filter, ready to be searched."""
        self.refresh()
        return partial(self._search, self._matrix.view, self._feed.matching(where), where)

    def _search(
        self,
        view: View,
        allowed: RowArray | None,
        where: Filter,
        queries: FloatArray,
        limit: int,
        *,
        without: int | None = None,
    ) -> list[VectorLeg]:
        wanted = limit + (without is not None)
        found, compared, exact = scan(view, queries, wanted, allowed)
        self.comparisons += compared
        found = [[c for c in line if c.row != without] for line in found]
        ids = self._ids({c.row for line in found for c in line})
        self_fits = without is not None and (allowed is None or bool(np.isin(without, allowed)))
        return [self._leg(line, ids, limit, where, int(self_fits), exact) for line in found]

    def _ids(self, rows: set[int]) -> Mapping[int, str]:
        """The ids of rows, and perhaps of others; a row's id never changes, so the table is asked once."""
        known = self._known
        new = rows.difference(known)
        if len(known) + len(new) > IDS_KEPT_MAX:
            known, new = {}, rows
            self._known = known
        if new:
            known.update(self._feed.ids(sorted(new)))
        return known

    def vector(self, row: int) -> FloatArray | None:
        """The vector of a document's row."""
        self.refresh()
        return self._matrix.vector(row)

    def _leg(
        self,
        line: Sequence[Candidate],
        ids: Mapping[int, str],
        limit: int,
        where: Filter,
        left_out: int,
        exact: bool,
    ) -> VectorLeg:
        hits = ranked([(ids[c.row], c.score) for c in line if c.row in ids], limit)
        short = len(hits) < limit and len(hits) < self._feed.count(where) - left_out
        return VectorLeg(hits, exact=exact, short=short, space=self._space.fingerprint)


def ranked(found: Sequence[tuple[str, float]], limit: int) -> tuple[Hit, ...]:
    """Ranks for ids with scores: best first, equal ones by id, at most `limit`."""
    ordered = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]
    return tuple(Hit(id_, rank, score) for rank, (id_, score) in enumerate(ordered, 1))
