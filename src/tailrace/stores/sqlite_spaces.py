"""Spaces in the SQLite file: which there are, which one is searched, and the count of writes.

It knows nothing of documents; what is done inside somebody's transaction takes the connection.
"""

from sqlite3 import Connection

from tailrace.stores.batches import mismatch
from tailrace.stores.errors import SpaceInUse, UnknownSpace
from tailrace.stores.port import Canary, Space, StoredSpace
from tailrace.stores.spaces import from_body, stored_space, to_body, to_bytes
from tailrace.stores.sqlite_file import SqliteFile


class SqliteSpaces:
    """The spaces of one file; see the port."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def all(self) -> list[StoredSpace]:
        """See the port."""
        query = (
            "SELECT space, state, canary_text, canary, "
            "(SELECT count(*) FROM vectors v WHERE v.space = s.number) FROM spaces s ORDER BY number"
        )
        with self._file.reading() as connection:
            return [stored_space(*line) for line in connection.execute(query)]

    def active(self) -> StoredSpace | None:
        """See the port."""
        return next((held for held in self.all() if held.state == "active"), None)

    def add(self, space: Space, canary: Canary | None = None) -> StoredSpace:
        """See the port."""
        insert = (
            "INSERT INTO spaces (fingerprint, space, state, canary_text, canary) "
            "SELECT ?, ?, iif(EXISTS (SELECT 1 FROM spaces WHERE state = 'active'), "
            "'backfilling', 'active'), ?, ? WHERE true ON CONFLICT DO NOTHING"
        )
        text = canary.text if canary else None
        vector = to_bytes(canary.vector) if canary else None
        body = to_body(space)
        with self._file.writing() as connection:
            connection.execute(insert, (space.fingerprint, body, text, vector))
        return next(held for held in self.all() if held.space == space)

    def switch(self, space: Space) -> None:
        """See the port."""
        with self._file.writing() as connection:
            if known_number(connection, space) is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
            connection.execute(
                "UPDATE spaces SET state = iif(fingerprint = ?1, 'active', 'kept') "
                "WHERE fingerprint = ?1 OR state = 'active'",
                (space.fingerprint,),
            )
            next_generation(connection)

    def drop(self, space: Space) -> None:
        """See the port."""
        with self._file.writing() as connection:
            number = known_number(connection, space)
            if number is None:
                raise UnknownSpace(f"the store holds no space of {space.model}")
            if active_space(connection) == space:
                raise SpaceInUse
            for table in ("vectors", "graves", "snapshots"):
                connection.execute(f"DELETE FROM {table} WHERE space = ?", (number,))
            connection.execute("DELETE FROM spaces WHERE number = ?", (number,))


def generation(connection: Connection) -> int:
    """The count of writes that this connection sees."""
    value = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
    return int(value)


def next_generation(connection: Connection) -> int:
    """Count one more write; gives the new count."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    return generation(connection)


def known_number(connection: Connection, space: Space) -> int | None:
    """The number of a space that is held."""
    query = "SELECT number FROM spaces WHERE fingerprint = ?"
    found = connection.execute(query, (space.fingerprint,)).fetchone()
    return found[0] if found else None


def active_space(connection: Connection) -> Space | None:
    """The space that is searched."""
    found = connection.execute("SELECT space FROM spaces WHERE state = 'active'").fetchone()
    return from_body(found[0]) if found else None


def held_number(connection: Connection, space: Space) -> int:
    """The number of a space that somebody brings; raises SpaceMismatch."""
    number = known_number(connection, space)
    if number is None:
        raise mismatch(space, active_space(connection))
    return number
