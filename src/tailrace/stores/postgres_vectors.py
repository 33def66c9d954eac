"""Vectors in PostgreSQL: a table per space, in pgvector's type where the extension is there, else as bytes.

With pgvector the server searches: exactly where few rows fit the filter or there is no index, else by HNSW
with iterative scan, because a filter is applied after the index and would leave the answer short.
Without it the table feeds the matrix of this process.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from psycopg import Connection

from tailrace.stores.feed import Change, Search, Snapshot, ranked
from tailrace.stores.filters import POSTGRES, condition
from tailrace.stores.matrix import RowArray
from tailrace.stores.port import ALL, Filter, FloatArray, Space, VectorLeg
from tailrace.stores.postgres_database import PostgresDatabase, Row
from tailrace.stores.spaces import to_bytes

EXACT_ROWS = 20_000
"""Up to so many matching rows the search is exact."""

EXACT_SHARE = 0.05
"""Up to this share of all rows the search is exact."""

SCAN_TUPLES_MAX = 40_000
"""Rows that an iterative scan of the index visits at most."""

EF_SEARCH = 200
"""How many near rows the index keeps in mind while it searches."""


def table(number: int) -> str:
    """The table of a space's vectors."""
    return f"vectors_{number}"


def make_table(connection: Connection[Row], number: int, space: Space, *, pgvector: bool) -> None:
    """The table of a new space."""
    kind = f"vector({space.dimension})" if pgvector else "bytea"
    storage = "ALTER TABLE {0} ALTER vector SET STORAGE PLAIN" if pgvector else ""
    connection.execute(
        f"CREATE TABLE {table(number)} (row bigint PRIMARY KEY, generation bigint NOT NULL, "
        f"vector {kind} NOT NULL); CREATE INDEX ON {table(number)} (generation);"
        + storage.format(table(number))
    )


def write(
    connection: Connection[Row],
    number: int,
    rows: Sequence[int],
    vectors: FloatArray,
    generation: int,
    *,
    pgvector: bool,
) -> None:
    """Put vectors at rows."""
    values: list[object] = [literal(vector) if pgvector else to_bytes(vector) for vector in vectors]
    query = (
        f"INSERT INTO {table(number)} SELECT unnest(%s::bigint[]), %s, "
        f"unnest(%s::{'text' if pgvector else 'bytea'}[]){'::vector' if pgvector else ''} "
        "ON CONFLICT (row) DO UPDATE SET vector = excluded.vector, generation = excluded.generation"
    )
    connection.execute(query, (list(rows), generation, values))


def drop_vectors(connection: Connection[Row], rows: Sequence[int], now: int) -> None:
    """Take the vectors at rows out of every space."""
    for (number,) in connection.execute("SELECT number FROM spaces").fetchall():
        connection.execute(
            f"WITH gone AS (DELETE FROM {table(number)} WHERE row = ANY(%s) "
            "RETURNING row) INSERT INTO graves SELECT %s, row, %s FROM gone",
            (list(rows), number, now),
        )


def literal(vector: FloatArray) -> str:
    """A vector as pgvector reads it; nine digits give every float32 back."""
    return "[" + ",".join(f"{value:.9g}" for value in vector.tolist()) + "]"


class PostgresFeed:
    """What the matrix reads of the tables; see the protocol."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def generation(self) -> int:
        """See the protocol."""
        with self._database.reading() as connection:
            return generation(connection)

    def changes(self, space: Space, since: int) -> Change:
        """See the protocol."""
        with self._database.reading() as connection:
            now = generation(connection)
            number = space_number(connection, space)
            if number is None:
                return Change(now, True, [], [], np.empty((0, space.dimension), np.float32))
            found = connection.execute(
                f"SELECT row, vector FROM {table(number)} WHERE generation > %s", (since,)
            ).fetchall()
            graves = connection.execute(
                "SELECT row FROM graves WHERE space = %s AND generation > %s", (number, since)
            ).fetchall()
        joined = b"".join(bytes(vector) for _, vector in found)
        vectors = np.frombuffer(joined, "<f4").reshape(len(found), space.dimension)
        rows = [row for row, _ in found]
        dropped = [row for (row,) in graves]
        return Change(now, since < 0, [] if since < 0 else dropped, rows, vectors)

    def snapshot(self, space: Space) -> Snapshot | None:  # noqa: ARG002
        """See the protocol: none, the server has no directory of ours."""
        return None

    def keep(self, space: Space, snapshot: Snapshot) -> Snapshot:  # noqa: ARG002
        """See the protocol: it stays in memory."""
        return snapshot

    def matching(self, where: Filter) -> RowArray | None:
        """See the protocol."""
        if where == ALL:
            return None
        clause, values = condition(where, POSTGRES)
        with self._database.reading() as connection:
            found = connection.execute(f"SELECT row FROM documents WHERE {clause}", values)
            return np.asarray([row for (row,) in found], np.int64)

    def ids(self, rows: Sequence[int]) -> Mapping[int, str]:
        """See the protocol."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT row, id FROM documents WHERE row = ANY(%s)", (list(rows),)
            )
            return dict(found.fetchall())

    def count(self, where: Filter) -> int:
        """See the protocol."""
        with self._database.reading() as connection:
            return count(connection, where)


class ServerLeg:
    """Searches one space by pgvector."""

    def __init__(self, space: Space, database: PostgresDatabase) -> None:
        self._space = space
        self._database = database
        self.comparisons = 0

    def vector(self, row: int) -> FloatArray | None:
        """The vector of a document's row."""
        with self._database.reading() as connection:
            number = space_number(connection, self._space)
            query = f"SELECT vector::real[] FROM {table(number or 0)} WHERE row = %s"
            found = connection.execute(query, (row,)).fetchone() if number else None
        return np.asarray(found[0], np.float32) if found else None

    def near(self, where: Filter) -> Search:
        """What fits a filter, ready to be searched; the server reads the tables when it is."""
        return partial(self._search, where)

    def _search(
        self, where: Filter, queries: FloatArray, limit: int, *, without: int | None = None
    ) -> list[VectorLeg]:
        with self._database.reading() as connection:
            number = space_number(connection, self._space)
            if number is None:
                return [VectorLeg((), True, False, self._space.fingerprint) for _ in queries]
            total = count(connection, ALL)
            most = max(EXACT_ROWS, int(EXACT_SHARE * total))
            fitting = count(connection, where, most + 1)
            exact = fitting <= most or not has_index(connection, number)
            if not exact:
                for name, value in (
                    ("iterative_scan", "relaxed_order"),
                    ("ef_search", str(min(1000, max(EF_SEARCH, 2 * limit)))),
                    ("max_scan_tuples", str(SCAN_TUPLES_MAX)),
                ):
                    connection.execute(f"SET LOCAL hnsw.{name} = '{value}'")
            legs = []
            for query in queries:
                found = _nearest(connection, number, query, limit, where, without, exact=exact)
                left_out = int(without is not None)
                possible = fitting - left_out
                short = len(found) < min(limit, possible)
                self.comparisons += min(fitting, total) if exact else EF_SEARCH
                legs.append(VectorLeg(ranked(found, limit), exact, short, self._space.fingerprint))
        return legs


def _nearest(
    connection: Connection[Row],
    number: int,
    query: FloatArray,
    limit: int,
    where: Filter,
    without: int | None,
    *,
    exact: bool,
) -> list[tuple[str, float]]:
    clause, values = condition(where, POSTGRES)
    distance = "(v.vector <#> %s::vector)"
    # a sum cannot be read from the index, so it forces the exact order
    order = f"round(({distance} + 0)::numeric, 6), d.id" if exact else distance
    asked: list[object] = [literal(query)]
    statement = (
        f"SELECT d.id, round((-{distance})::numeric, 6)::float8 FROM {table(number)} v "
        f"JOIN documents d ON d.row = v.row WHERE {clause} AND d.row IS DISTINCT FROM %s "
        f"ORDER BY {order} LIMIT %s"
    )
    given = (*asked, *values, without, *asked, max(0, limit))
    found = connection.execute(statement, given)
    return [(id_, score) for id_, score in found]


def generation(connection: Connection[Row]) -> int:
    """The generation that this connection sees."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return int(found[0]) if found else 0


def space_number(connection: Connection[Row], space: Space) -> int | None:
    """The number of a space that is held."""
    found = connection.execute(
        "SELECT number FROM spaces WHERE fingerprint = %s", (space.fingerprint,)
    ).fetchone()
    return int(found[0]) if found else None


def count(connection: Connection[Row], where: Filter, most: int | None = None) -> int:
    """How many documents a filter lets through, counted up to `most`."""
    clause, values = condition(where, POSTGRES)
    query = f"SELECT count(*) FROM (SELECT 1 FROM documents WHERE {clause} LIMIT %s) counted"
    found = connection.execute(query, (*values, most)).fetchone()
    return int(found[0]) if found else 0


def has_index(connection: Connection[Row], number: int) -> bool:
    """Whether the space's HNSW index is there and whole."""
    query = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
    return connection.execute(query, (f"{table(number)}_hnsw",)).fetchone() is not None


def wants_index(connection: Connection[Row], number: int) -> bool:
    """Whether an HNSW index is missing that searches would use."""
    query = f"SELECT count(*) FROM (SELECT 1 FROM {table(number)} LIMIT %s) counted"
    found = connection.execute(query, (EXACT_ROWS + 1,)).fetchone()
    return bool(found and found[0] > EXACT_ROWS) and not has_index(connection, number)


def make_index(database: PostgresDatabase, number: int) -> None:
    """Make the HNSW index of a space, beside its readers and writers."""
    name = f"{table(number)}_hnsw"
    with database.bare() as connection:
        connection.execute(f"DROP INDEX IF EXISTS {name}")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON {table(number)} USING hnsw (vector vector_ip_ops)"
        )
