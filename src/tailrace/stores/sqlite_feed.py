"""What the matrix reads of the SQLite file: changed vectors, rows that a filter lets through, ids."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from tailrace.stores.feed import Change
from tailrace.stores.filters import SQLITE, condition
from tailrace.stores.matrix import RowArray
from tailrace.stores.port import ALL, Filter, Space
from tailrace.stores.sqlite_file import SqliteFile


class SqliteFeed:
    """See the protocol."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def generation(self) -> int:
        """See the protocol."""
        with self._file.reading() as connection:
            query = "SELECT value FROM meta WHERE key = 'generation'"
            return int(connection.execute(query).fetchone()[0])

    def changes(self, space: Space, since: int) -> Change:
        """See the protocol."""
        with self._file.reading() as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta"))
            number = connection.execute(
                "SELECT number FROM spaces WHERE fingerprint = ?", (space.fingerprint,)
            ).fetchone()
            whole = number is None or since < int(meta["graves_from"])
            after = (number[0] if number else -1, -1 if whole else since)
            found = connection.execute(
                "SELECT row, vector FROM vectors WHERE space = ? AND generation > ?", after
            ).fetchall()
            graves = "SELECT row FROM graves WHERE space = ? AND generation > ?"
            dropped = [] if whole else [row for (row,) in connection.execute(graves, after)]
        joined = b"".join(vector for _, vector in found)
        vectors = np.frombuffer(joined, "<f4").reshape(len(found), space.dimension)
        rows = [row for row, _ in found]
        return Change(int(meta["generation"]), whole, dropped, rows, vectors)

    def matching(self, where: Filter) -> RowArray | None:
        """See the protocol."""
        if where == ALL:
            return None
        clause, values = condition(where, SQLITE)
        with self._file.reading() as connection:
            found = connection.execute(f"SELECT row FROM documents WHERE {clause}", values)
            return np.fromiter((row for (row,) in found), np.int64)

    def ids(self, rows: Sequence[int]) -> Mapping[int, str]:
        """See the protocol."""
        query = "SELECT row, id FROM documents WHERE row IN (SELECT value FROM json_each(?))"
        with self._file.reading() as connection:
            return dict(connection.execute(query, (json.dumps(list(rows)),)))

    def count(self, where: Filter) -> int:
        """See the protocol."""
        clause, values = condition(where, SQLITE)
        with self._file.reading() as connection:
            query = f"SELECT count(*) FROM documents WHERE {clause}"
            return int(connection.execute(query, values).fetchone()[0])
