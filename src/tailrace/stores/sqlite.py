"""The embedded store: one SQLite file with documents, our own terms in FTS5, and float32 vectors.

No extension is loaded. The vector leg is an exact scan in this process, fed from the table.
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection

from tailrace.stores.batches import check_found, check_vectors, last_of_each, mismatch
from tailrace.stores.documents import author_key, from_body, to_body
from tailrace.stores.errors import UnknownDocument, UnknownSpace
from tailrace.stores.feed import MatrixLeg, asked_in
from tailrace.stores.port import (
    ALL,
    Analyzer,
    Canary,
    Document,
    Filter,
    Indexed,
    KeywordLeg,
    Near,
    Space,
    StoredSpace,
    StoreStats,
    Upserted,
    VectorLeg,
    Vectors,
)
from tailrace.stores.spaces import to_bytes
from tailrace.stores.sqlite_feed import SqliteFeed
from tailrace.stores.sqlite_file import SqliteFile
from tailrace.stores.sqlite_spaces import (
    SqliteSpaces,
    active_space,
    generation,
    held_number,
    known_number,
    next_generation,
)
from tailrace.stores.sqlite_terms import SqliteTerms

LISTED = "(SELECT value FROM json_each(?))"


class SqliteStore:
    """See the port. With `reindex` the keyword index is made again, whole or not at all."""

    def __init__(self, path: Path, analyzer: Analyzer, *, reindex: Indexed | None = None) -> None:
        self._analyzer = analyzer
        self._file = SqliteFile(path, analyzer.fingerprint, any_analyzer=reindex is not None)
        self._terms = SqliteTerms(self._file, analyzer)
        self._feed = SqliteFeed(self._file)
        self._spaces = SqliteSpaces(self._file)
        self._legs: dict[str, MatrixLeg] = {}
        self._legs_lock = threading.Lock()
        if reindex is not None:
            try:
                self._terms.reindex(reindex)
            except BaseException:
                self.close()
                raise

    @property
    def analyzer(self) -> Analyzer:
        """See the port."""
        return self._analyzer

    # -- writing --------------------------------------------------------------------------------

    def upsert(self, documents: Sequence[Document], *vectors: Vectors) -> Upserted:
        """See the port."""
        batch, batches = last_of_each(documents, vectors)
        fields = [self._terms.fields(document) for document in batch]
        with self._file.writing() as connection:
            self._terms.check(connection)
            numbers = [held_number(connection, given.space) for given in batches]
            check_found(batches, active_space(connection))
            now = next_generation(connection)
            counts = {"inserted": 0, "updated": 0, "unchanged": 0}
            rows = []
            for document, terms in zip(batch, fields, strict=True):
                row, what = _write_document(connection, document)
                counts[what] += 1
                rows.append(row)
                if what == "unchanged":
                    continue
                if what == "updated":
                    _drop_vectors(connection, [row], now)
                    self._terms.remove(connection, [row])
                self._terms.add(connection, row, terms)
            for number, given in zip(numbers, batches, strict=True):
                _write_vectors(connection, number, rows, given, now)
        return Upserted(**counts)

    def put_vectors(self, documents: Sequence[Document], vectors: Vectors) -> int:
        """See the port."""
        check_vectors(vectors, len(documents))
        query = f"SELECT id, digest, row FROM documents WHERE id IN {LISTED}"
        ids = json.dumps([document.id for document in documents])
        with self._file.writing() as connection:
            number = held_number(connection, vectors.space)
            held = {(id_, digest): row for id_, digest, row in connection.execute(query, (ids,))}
            given = [held.get((document.id, document.digest)) for document in documents]
            last = {row: index for index, row in enumerate(given) if row is not None}
            taken = Vectors(vectors.space, vectors.rows[list(last.values())])
            _write_vectors(connection, number, list(last), taken, next_generation(connection))
        return len(last)

    def delete(self, ids: Sequence[str]) -> int:
        """See the port."""
        with self._file.writing() as connection:
            query = f"SELECT row FROM documents WHERE id IN {LISTED}"
            rows = [row for (row,) in connection.execute(query, (json.dumps(list(ids)),))]
            _drop_vectors(connection, rows, next_generation(connection))
            self._terms.remove(connection, rows)
            connection.execute(f"DELETE FROM documents WHERE row IN {LISTED}", (json.dumps(rows),))
        return len(rows)

    # -- reading --------------------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> list[Document]:
        """See the port."""
        query = f"SELECT id, body FROM documents WHERE id IN {LISTED}"
        with self._file.reading() as connection:
            held = dict(connection.execute(query, (json.dumps(list(ids)),)))
        return [from_body(held[id_]) for id_ in ids if id_ in held]

    def unfinished(self, documents: Sequence[Document], space: Space) -> list[Document]:
        """See the port."""
        query = (
            "SELECT d.id, d.digest FROM documents d JOIN vectors v ON v.row = d.row "
            "JOIN spaces s ON s.number = v.space "
            f"WHERE s.fingerprint = ? AND d.id IN {LISTED}"
        )
        ids = json.dumps([document.id for document in documents])
        with self._file.reading() as connection:
            done = dict(connection.execute(query, (space.fingerprint, ids)))
        return [document for document in documents if done.get(document.id) != document.digest]

    def missing(self, space: Space, limit: int) -> list[Document]:
        """See the port."""
        query = (
            "SELECT body FROM documents WHERE row NOT IN (SELECT row FROM vectors WHERE space = "
            "(SELECT number FROM spaces WHERE fingerprint = ?)) ORDER BY id LIMIT ?"
        )
        with self._file.reading() as connection:
            bodies = connection.execute(query, (space.fingerprint, limit)).fetchall()
        return [from_body(body) for (body,) in bodies]

    def keyword(self, terms: Sequence[str], limit: int, where: Filter = ALL) -> KeywordLeg:
        """See the port."""
        return self._terms.search(terms, limit, where)

    def near(self, space: Space, where: Filter = ALL, *, backfilling: bool = False) -> Near:
        """See the port."""
        return asked_in(space, self._leg(space, backfilling=backfilling).near(where))

    def vector(
        self, queries: Vectors, limit: int, where: Filter = ALL, *, backfilling: bool = False
    ) -> list[VectorLeg]:
        """See the port."""
        return self.near(queries.space, where, backfilling=backfilling)(queries, limit)

    def similar(self, id: str, limit: int, where: Filter = ALL) -> VectorLeg:  # noqa: A002
        """See the port."""
        active = self.space()
        with self._file.reading() as connection:
            found = connection.execute("SELECT row FROM documents WHERE id = ?", (id,)).fetchone()
        if found is None:
            raise UnknownDocument(f"there is no document {id!r}")
        leg = self._leg(active.space, backfilling=False) if active else None
        vector = leg.vector(found[0]) if leg else None
        if leg is None or vector is None:
            raise UnknownDocument(f"{id!r} has no vector yet")
        return leg.near(where)(vector[None, :], limit, without=found[0])[0]

    # -- spaces ---------------------------------------------------------------------------------

    def spaces(self) -> list[StoredSpace]:
        """See the port."""
        return self._spaces.all()

    def space(self) -> StoredSpace | None:
        """See the port."""
        return self._spaces.active()

    def add_space(self, space: Space, canary: Canary | None = None) -> StoredSpace:
        """See the port."""
        return self._spaces.add(space, canary)

    def switch(self, space: Space) -> None:
        """See the port."""
        self._spaces.switch(space)

    def drop(self, space: Space) -> None:
        """See the port."""
        self._spaces.drop(space)
        with self._legs_lock:
            self._legs.pop(space.fingerprint, None)

    def build_index(self, space: Space) -> bool:
        """See the port: the matrix is kept up to date by itself."""
        with self._file.reading() as connection:
            if known_number(connection, space) is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
        return False

    # -- numbers --------------------------------------------------------------------------------

    def categories(self) -> dict[str, int]:
        """See the port."""
        query = "SELECT category, count(*) FROM documents WHERE category > '' GROUP BY 1 ORDER BY 1"
        with self._file.reading() as connection:
            return dict(connection.execute(query))

    def stats(self) -> StoreStats:
        """See the port."""
        columns = ("author", "translator", "publisher", "year", "category", "description")
        present = ", ".join(
            f"coalesce(avg(json_extract(body, '$.{name}') IS NOT NULL), 0)" for name in columns
        )
        lists = ", ".join(
            f"coalesce(avg(json_array_length(body, '$.{name}') > 0), 0)"
            for name in ("keywords", "aliases")
        )
        with self._file.reading() as connection:
            line = connection.execute(
                f"SELECT count(*), {present}, {lists} FROM documents"
            ).fetchone()
            now = generation(connection)
        return StoreStats(
            engine="sqlite",
            documents=line[0],
            generation=now,
            analyzer=self._analyzer.fingerprint,
            coverage=dict(zip((*columns, "keywords", "aliases"), line[1:], strict=True)),
            vector_comparisons=sum(leg.comparisons for leg in self._legs.values()),
            detail={"file_bytes": self._file.path.stat().st_size},
        )

    def close(self) -> None:
        """See the port."""
        self._file.close()

    def _leg(self, space: Space, *, backfilling: bool) -> MatrixLeg:
        query = "SELECT state FROM spaces WHERE fingerprint = ?"
        with self._file.reading() as connection:
            held = connection.execute(query, (space.fingerprint,)).fetchone()
            if held is None or (held[0] != "active" and not backfilling):
                raise mismatch(space, active_space(connection))
        with self._legs_lock:
            return self._legs.setdefault(space.fingerprint, MatrixLeg(space, self._feed))


def _write_document(connection: Connection, document: Document) -> tuple[int, str]:
    digest = document.digest
    find = "SELECT row, digest FROM documents WHERE id = ?"
    held = connection.execute(find, (document.id,)).fetchone()
    if held and held[1] == digest:
        return held[0], "unchanged"
    values = (
        document.id,
        digest,
        to_body(document),
        document.category,
        document.year,
        author_key(document.author),
    )
    row = connection.execute(
        "INSERT INTO documents (id, digest, body, category, year, author) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, body = excluded.body, "
        "category = excluded.category, year = excluded.year, author = excluded.author RETURNING row",
        values,
    ).fetchone()[0]
    return row, "updated" if held else "inserted"


def _drop_vectors(connection: Connection, rows: Sequence[int], now: int) -> None:
    gone = f"FROM vectors WHERE row IN {LISTED}"
    listed = json.dumps(list(rows))
    connection.execute(f"INSERT INTO graves SELECT space, row, ? {gone}", (now, listed))
    connection.execute(f"DELETE {gone}", (listed,))


def _write_vectors(
    connection: Connection, number: int, rows: Sequence[int], given: Vectors, now: int
) -> None:
    connection.executemany(
        "INSERT INTO vectors VALUES (?,?,?,?) ON CONFLICT (space, row) DO UPDATE "
        "SET vector = excluded.vector, generation = excluded.generation",
        (
            (number, row, now, to_bytes(vector))
            for row, vector in zip(rows, given.rows, strict=True)
        ),
    )
