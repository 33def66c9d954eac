"""What the matrix reads of the SQLite file: changed vectors, rows that a filter lets through, ids."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from tailrace.stores.feed import Change, Snapshot
from tailrace.stores.filters import SQLITE, condition
from tailrace.stores.matrix import RowArray
from tailrace.stores.port import ALL, Filter, Space
from tailrace.stores.snapshot import (
    SNAPSHOT_FROM,
    map_snapshot,
    remove_snapshots,
    write_snapshot,
)
from tailrace.stores.sqlite_file import SqliteFile
from tailrace.stores.sqlite_spaces import generation, known_number


class SqliteFeed:
    """See the protocol."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def generation(self) -> int:
        """See the protocol."""
        with self._file.reading() as connection:
            return generation(connection)

    def changes(self, space: Space, since: int) -> Change:
        """See the protocol."""
        with self._file.reading() as connection:
            now = generation(connection)
            number = known_number(connection, space)
            query = "SELECT generation FROM snapshots WHERE space = ?"
            kept = connection.execute(query, (number,)).fetchone()
            whole = since < (kept[0] if kept else 0)
            after = (number, -1 if whole else since)
            found = connection.execute(
                "SELECT row, vector FROM vectors WHERE space = ? AND generation > ?", after
            ).fetchall()
            graves = "SELECT row FROM graves WHERE space = ? AND generation > ?"
            dropped = [] if whole else [row for (row,) in connection.execute(graves, after)]
        joined = b"".join(vector for _, vector in found)
        vectors = np.frombuffer(joined, "<f4").reshape(len(found), space.dimension)
        rows = [row for row, _ in found]
        return Change(now, whole, dropped, rows, vectors)

    def snapshot(self, space: Space) -> Snapshot | None:
        """See the protocol."""
        query = "SELECT tag, generation FROM snapshots WHERE space = ?"
        with self._file.reading() as connection:
            kept = connection.execute(query, (known_number(connection, space),)).fetchone()
        mapped = map_snapshot(self._file.path, kept[0], space.dimension) if kept else None
        return Snapshot(kept[1], *mapped) if mapped else None

    def keep(self, space: Space, snapshot: Snapshot) -> Snapshot:
        """See the protocol."""
        if len(snapshot.rows) < SNAPSHOT_FROM:
            return snapshot
        path = self._file.path
        tag = write_snapshot(path, snapshot.rows, snapshot.vectors)
        with self._file.writing() as connection:
            number = known_number(connection, space)
            if number is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?,?,?)",
                    (number, tag, snapshot.generation),
                )
                connection.execute(
                    "DELETE FROM graves WHERE space = ? AND generation <= ?",
                    (number, snapshot.generation),
                )
            named = {tag for (tag,) in connection.execute("SELECT tag FROM snapshots")}
        mapped = map_snapshot(path, tag, space.dimension)
        remove_snapshots(path, named)
        return Snapshot(snapshot.generation, *mapped) if mapped else snapshot

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
