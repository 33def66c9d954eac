"""The server store: PostgreSQL 15 or newer, with pgvector where it is there.

What differs from the embedded store is where things lie, not what is promised; see the port.
"""

import threading
from collections.abc import Sequence
from typing import Protocol

from tailrace.stores.batches import check_found, check_vectors, last_of_each, mismatch
from tailrace.stores.documents import from_body
from tailrace.stores.errors import UnknownDocument, UnknownSpace
from tailrace.stores.feed import MatrixLeg, Search, asked_in
from tailrace.stores.port import (
    ALL,
    Analyzer,
    Canary,
    Document,
    Filter,
    FloatArray,
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
from tailrace.stores.postgres_database import PostgresDatabase
from tailrace.stores.postgres_documents import rows_of, write_documents
from tailrace.stores.postgres_spaces import (
    PostgresSpaces,
    active_space,
    held_number,
    next_generation,
)
from tailrace.stores.postgres_terms import PostgresTerms
from tailrace.stores.postgres_vectors import (
    PostgresFeed,
    ServerLeg,
    drop_vectors,
    generation,
    has_index,
    make_index,
    space_number,
    table,
    wants_index,
    write,
)


class _Leg(Protocol):
    comparisons: int

    def near(self, where: Filter) -> Search: ...

    def vector(self, row: int) -> FloatArray | None: ...


class PostgresStore:
    """See the port. With `reindex` the keyword index is made again, whole or not at all.

    `pgvector` False does without the extension where the tables are made now.
    """

    def __init__(
        self,
        url: str,
        analyzer: Analyzer,
        *,
        schema: str = "tailrace",
        reindex: Indexed | None = None,
        pgvector: bool = True,
    ) -> None:
        self._analyzer = analyzer
        self._database = PostgresDatabase(
            url, schema, analyzer.fingerprint, any_analyzer=reindex is not None, pgvector=pgvector
        )
        self._terms = PostgresTerms(self._database, analyzer)
        self._spaces = PostgresSpaces(self._database)
        self._legs: dict[str, _Leg] = {}
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

    @property
    def _pgvector(self) -> bool:
        return self._database.pgvector is not None

    # -- writing --------------------------------------------------------------------------------

    def upsert(self, documents: Sequence[Document], *vectors: Vectors) -> Upserted:
        """See the port."""
        batch, batches = last_of_each(documents, vectors)
        with self._database.writing() as connection:
            self._terms.check(connection)
            numbers = [held_number(connection, given.space) for given in batches]
            check_found(batches, active_space(connection))
            now = next_generation(connection)
            held = rows_of(connection, [document.id for document in batch])
            changed = [d for d in batch if held.get(d.id, (0, ""))[1] != d.digest]
            old = [held[document.id][0] for document in changed if document.id in held]
            drop_vectors(connection, old, now)
            self._terms.count(connection, old, -1)
            write_documents(connection, changed, self._terms)
            rows = {
                id_: row for id_, (row, _) in rows_of(connection, [d.id for d in batch]).items()
            }
            self._terms.count(connection, [rows[document.id] for document in changed], 1)
            for number, given in zip(numbers, batches, strict=True):
                places = [rows[document.id] for document in batch]
                write(connection, number, places, given.rows, now, pgvector=self._pgvector)
        return Upserted(len(changed) - len(old), len(old), len(batch) - len(changed))

    def put_vectors(self, documents: Sequence[Document], vectors: Vectors) -> int:
        """See the port."""
        check_vectors(vectors, len(documents))
        with self._database.writing() as connection:
            number = held_number(connection, vectors.space)
            held = rows_of(connection, [document.id for document in documents])
            given = [(document.digest, held.get(document.id)) for document in documents]
            last = {
                there[0]: index
                for index, (digest, there) in enumerate(given)
                if there is not None and there[1] == digest
            }
            taken = vectors.rows[list(last.values())]
            now = next_generation(connection)
            write(connection, number, list(last), taken, now, pgvector=self._pgvector)
        return len(last)

    def delete(self, ids: Sequence[str]) -> int:
        """See the port."""
        with self._database.writing() as connection:
            rows = [row for row, _ in rows_of(connection, ids).values()]
            drop_vectors(connection, rows, next_generation(connection))
            self._terms.count(connection, rows, -1)
            connection.execute("DELETE FROM documents WHERE row = ANY(%s)", (rows,))
        return len(rows)

    # -- reading --------------------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> list[Document]:
        """See the port."""
        query = "SELECT id, body FROM documents WHERE id = ANY(%s)"
        with self._database.reading() as connection:
            held: dict[str, str] = dict(connection.execute(query, (list(ids),)).fetchall())
        return [from_body(held[id_]) for id_ in ids if id_ in held]

    def unfinished(self, documents: Sequence[Document], space: Space) -> list[Document]:
        """See the port."""
        with self._database.reading() as connection:
            number = space_number(connection, space)
            if number is None:
                return list(documents)
            query = (
                f"SELECT d.id, d.digest FROM documents d JOIN {table(number)} v ON v.row = d.row "
                "WHERE d.id = ANY(%s)"
            )
            ids = [document.id for document in documents]
            done: dict[str, str] = dict(connection.execute(query, (ids,)).fetchall())
        return [document for document in documents if done.get(document.id) != document.digest]

    def missing(self, space: Space, limit: int) -> list[Document]:
        """See the port."""
        with self._database.reading() as connection:
            number = space_number(connection, space)
            vectors = f"AND row NOT IN (SELECT row FROM {table(number)})" if number else ""
            query = f"SELECT body FROM documents WHERE true {vectors} ORDER BY id LIMIT %s"
            bodies = connection.execute(query, (limit,)).fetchall()
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
        with self._database.reading() as connection:
            held = rows_of(connection, [id])
            active = active_space(connection)
        if id not in held:
            raise UnknownDocument(f"there is no document {id!r}")
        leg = self._leg(active, backfilling=False) if active else None
        row = held[id][0]
        vector = leg.vector(row) if leg else None
        if leg is None or vector is None:
            raise UnknownDocument(f"{id!r} has no vector yet")
        return leg.near(where)(vector[None, :], limit, without=row)[0]

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
        """See the port: the HNSW index of pgvector. Searches are exact, and slower, until it is there."""
        with self._database.reading() as connection:
            number = space_number(connection, space)
            if number is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
            if not (self._pgvector and wants_index(connection, number)):
                return False
        make_index(self._database, number)
        return True

    # -- numbers --------------------------------------------------------------------------------

    def categories(self) -> dict[str, int]:
        """See the port."""
        query = "SELECT category, count(*) FROM documents WHERE category > '' GROUP BY 1 ORDER BY 1"
        with self._database.reading() as connection:
            return dict(connection.execute(query).fetchall())

    def stats(self) -> StoreStats:
        """See the port."""
        columns = ("author", "translator", "publisher", "year", "category", "description")
        lists = ("keywords", "aliases")
        parts = [f"avg((body::jsonb ->> '{name}' IS NOT NULL)::int)" for name in columns]
        parts += [f"avg((jsonb_array_length(body::jsonb -> '{name}') > 0)::int)" for name in lists]
        with self._database.reading() as connection:
            query = f"SELECT count(*), {', '.join(parts)} FROM documents"
            line = connection.execute(query).fetchone() or (0,)
            now = generation(connection)
            active = active_space(connection)
            number = space_number(connection, active) if active else None
            indexed = has_index(connection, number) if number else False
            server = connection.info.server_version
        version = ".".join(map(str, self._database.pgvector or ())) or "none"
        return StoreStats(
            engine="postgres",
            documents=line[0],
            generation=now,
            analyzer=self._analyzer.fingerprint,
            coverage={
                name: float(share or 0)
                for name, share in zip((*columns, *lists), line[1:], strict=True)
            },
            vector_comparisons=sum(leg.comparisons for leg in self._legs.values()),
            detail={
                "server": server,
                "pgvector": version,
                "hnsw": "yes" if indexed else "no",
                "warning": self._database.warning,
            },
        )

    def close(self) -> None:
        """See the port."""
        self._database.close()

    def _leg(self, space: Space, *, backfilling: bool) -> _Leg:
        with self._database.reading() as connection:
            active = active_space(connection)
            known = space_number(connection, space) is not None
        if space != active and not (backfilling and known):
            raise mismatch(space, active)
        with self._legs_lock:
            leg = self._legs.get(space.fingerprint)
            if leg is None:
                if self._pgvector:
                    leg = ServerLeg(space, self._database)
                else:
                    leg = MatrixLeg(space, PostgresFeed(self._database))
                self._legs[space.fingerprint] = leg
            return leg
