"""Spaces in PostgreSQL: which there are, which one is searched, and the count of writes.

It knows nothing of documents; what is done inside somebody's transaction takes the connection.
"""

from psycopg import Connection

from tailrace.stores.batches import mismatch
from tailrace.stores.errors import SpaceInUse, UnknownSpace
from tailrace.stores.port import Canary, Space, StoredSpace
from tailrace.stores.postgres_database import PostgresDatabase, Row
from tailrace.stores.postgres_vectors import generation, make_table, space_number, table
from tailrace.stores.spaces import from_body, stored_space, to_body, to_bytes


class PostgresSpaces:
    """The spaces of one database; see the port."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def all(self) -> list[StoredSpace]:
        """See the port."""
        query = "SELECT number, space, state, canary_text, canary FROM spaces ORDER BY number"
        held = []
        with self._database.reading() as connection:
            for number, body, state, text, canary in connection.execute(query).fetchall():
                counted = f"SELECT count(*) FROM {table(number)}"
                vectors = connection.execute(counted).fetchone() or (0,)
                vector = bytes(canary) if isinstance(canary, bytes | memoryview) else None
                said = None if text is None else text
                held.append(stored_space(body, str(state), said, vector, vectors[0]))
        return held

    def active(self) -> StoredSpace | None:
        """See the port."""
        return next((held for held in self.all() if held.state == "active"), None)

    def add(self, space: Space, canary: Canary | None = None) -> StoredSpace:
        """See the port."""
        insert = (
            "INSERT INTO spaces (fingerprint, space, state, canary_text, canary) "
            "SELECT %s, %s, CASE WHEN EXISTS (SELECT 1 FROM spaces WHERE state = 'active') "
            "THEN 'backfilling' ELSE 'active' END, %s, %s ON CONFLICT DO NOTHING RETURNING number"
        )
        text = canary.text if canary else None
        vector = to_bytes(canary.vector) if canary else None
        with self._database.writing() as connection:
            made = connection.execute(
                insert, (space.fingerprint, to_body(space), text, vector)
            ).fetchone()
            if made:
                make_table(connection, made[0], space, pgvector=self._database.pgvector is not None)
        return next(held for held in self.all() if held.space == space)

    def switch(self, space: Space) -> None:
        """See the port."""
        with self._database.writing() as connection:
            if space_number(connection, space) is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
            connection.execute(
                "UPDATE spaces SET state = CASE WHEN fingerprint = %s THEN 'active' ELSE 'kept' END "
                "WHERE fingerprint = %s OR state = 'active'",
                (space.fingerprint, space.fingerprint),
            )
            next_generation(connection)

    def drop(self, space: Space) -> None:
        """See the port."""
        with self._database.writing() as connection:
            number = space_number(connection, space)
            if number is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
            if active_space(connection) == space:
                raise SpaceInUse
            connection.execute(f"DROP TABLE {table(number)}")
            connection.execute("DELETE FROM graves WHERE space = %s", (number,))
            connection.execute("DELETE FROM spaces WHERE number = %s", (number,))


def next_generation(connection: Connection[Row]) -> int:
    """Count one more write; gives the new count."""
    connection.execute("UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'generation'")
    return generation(connection)


def active_space(connection: Connection[Row]) -> Space | None:
    """The space that is searched."""
    found = connection.execute("SELECT space FROM spaces WHERE state = 'active'").fetchone()
    return from_body(found[0]) if found else None


def held_number(connection: Connection[Row], space: Space) -> int:
    """The number of a space that somebody brings; raises SpaceMismatch."""
    number = space_number(connection, space)
    if number is None:
        raise mismatch(space, active_space(connection))
    return number
