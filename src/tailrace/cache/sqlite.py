"""Answers kept in memory and in one SQLite file, so that a restart remembers them.

Every read is from memory, and every write to the file is a writer thread's: the event loop never waits
for a disk. A file that cannot be used costs the answers in it, and nothing else.
"""

import hashlib
import io
import logging
import sqlite3
import threading
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from tailrace.cache.memory import MemoryCache
from tailrace.cache.port import CacheStats

log = logging.getLogger(__name__)

PENDING_MAX = 10_000
"""Answers that wait to be written; what comes beyond that is kept in memory only."""
BUSY_S = 5.0
"""How long the writer waits for another process that writes the same file."""
ARRAY, JSON = b"a", b"j"

_TABLE = """
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB NOT NULL, used REAL NOT NULL)
WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS answers_used ON answers (used)"
_KEEP = """
INSERT INTO answers VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, used = excluded.used
"""
_TRIM = """
DELETE FROM answers WHERE key IN
(SELECT key FROM answers ORDER BY used DESC LIMIT -1 OFFSET ?)
"""


class SqliteCache:
    """At most `entries_max` answers, arrays or JSON; what a former life left in `path` is known at once.

    A key must hold the model's fingerprint, so answers of a model that is gone are never found again
    and make room as they age.
    """

    def __init__(self, path: Path, entries_max: int = 1000) -> None:
        self._path = path
        self._entries_max = entries_max
        self._memory = MemoryCache(entries_max)
        self._pending: dict[bytes, tuple[bytes | None, float]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._load()
        self._writer = threading.Thread(target=self._write, name="tailrace-cache", daemon=True)
        self._writer.start()

    def get(self, key: Hashable) -> Any | None:
        """The answer kept for `key`, or None."""
        place = _place(key)
        found = self._memory.get(place)
        if found is not None:
            self._note(place, None)
        return found

    def put(self, key: Hashable, value: Any) -> None:
        """Keep an answer."""
        place = _place(key)
        self._memory.put(place, value)
        if self._entries_max:
            self._note(place, _packed(value))

    def clear(self) -> None:
        """Forget every answer, those in the file too."""
        self._memory.clear()
        with self._changed:
            self._pending = {b"": (None, 0.0)}
            self._changed.notify()

    def stats(self) -> CacheStats:
        """The present numbers."""
        return self._memory.stats()

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._writer.join()

    def _note(self, place: bytes, answer: bytes | None) -> None:
        """Have the writer keep an answer, or that it was used."""
        with self._changed:
            if answer is None and place in self._pending:
                answer = self._pending[place][0]
            if place in self._pending or len(self._pending) < PENDING_MAX:
                self._pending[place] = (answer, time.time())
                self._changed.notify()

    # -- the file -----------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        made = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
        try:
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = NORMAL")
            made.execute(_TABLE)
            made.execute(_INDEX)
        except BaseException:
            made.close()
            raise
        return made

    def _load(self) -> None:
        """Take in what the file holds; one that is none is put aside."""
        try:
            file = self._connect()
        except sqlite3.DatabaseError as error:
            aside = self._path.with_name(f"{self._path.name}.unreadable")
            log.warning("the answer cache %s cannot be used (%s)", self._path, error)
            if self._path.is_file() and not isinstance(error, sqlite3.OperationalError):
                self._path.replace(aside)
            return
        try:
            newest = "SELECT key, answer FROM answers ORDER BY used DESC LIMIT ?"
            for place, answer in reversed(file.execute(newest, (self._entries_max,)).fetchall()):
                self._memory.put(place, _unpacked(answer))
        except (sqlite3.DatabaseError, ValueError) as error:
            log.warning("the answer cache %s cannot be read (%s)", self._path, error)
        finally:
            file.close()

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closed:
                    self._changed.wait()
                batch, self._pending = self._pending, {}
                if not batch:
                    return
            try:
                self._keep(batch)
            except (sqlite3.Error, OSError) as error:
                log.warning("%d answers were not written to %s (%s)", len(batch), self._path, error)

    def _keep(self, batch: dict[bytes, tuple[bytes | None, float]]) -> None:
        file = self._connect()
        try:
            file.execute("BEGIN IMMEDIATE")
            if b"" in batch:
                file.execute("DELETE FROM answers")
            for place, (answer, used) in batch.items():
                if answer is not None:
                    file.execute(_KEEP, (place, answer, used))
                elif place:
                    file.execute("UPDATE answers SET used = ? WHERE key = ?", (used, place))
            file.execute(_TRIM, (self._entries_max,))
            file.execute("COMMIT")
        finally:
            file.close()


def _place(key: Hashable) -> bytes:
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).digest()


def _packed(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        stream = io.BytesIO()
        np.save(stream, value, allow_pickle=False)
        return ARRAY + stream.getvalue()
    return JSON + orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _unpacked(answer: bytes) -> Any:
    if answer[:1] == ARRAY:
        return np.load(io.BytesIO(answer[1:]), allow_pickle=False)
    return orjson.loads(answer[1:])
