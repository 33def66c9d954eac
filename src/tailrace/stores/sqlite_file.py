"""The SQLite file of the embedded store: its tables, its connections, its one writer at a time.

Knows no search. Text columns of `terms` hold our own terms between spaces, so the tokenizer only splits.
"""

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from tailrace.stores.errors import (
    AnalyzerMismatch,
    StoreError,
    StoreForeign,
    StoreTooNew,
    StoreUnavailable,
)
from tailrace.stores.port import FIELDS

SCHEMA = 1
"""The version of the tables below; a file of a newer one is refused."""

APPLICATION_ID = 0x7A11ACE
"""Marks a file as ours."""

READERS_MAX = 8
"""Connections kept for readers."""

BUSY_S = 10.0
"""Seconds that a writer waits for another process that writes."""

_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, digest TEXT NOT NULL,
    body TEXT NOT NULL, category TEXT, year INTEGER, author TEXT NOT NULL
);
CREATE INDEX documents_category ON documents (category);
CREATE INDEX documents_year ON documents (year);
CREATE VIRTUAL TABLE terms USING fts5({", ".join(FIELDS)}, tokenize="ascii tokenchars '+#'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('terms', 'row');
CREATE TABLE spaces (
    number INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT NOT NULL UNIQUE, space TEXT NOT NULL,
    state TEXT NOT NULL, canary_text TEXT, canary BLOB
);
CREATE TABLE vectors (
    space INTEGER NOT NULL, row INTEGER NOT NULL, generation INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_row ON vectors (space, row);
CREATE INDEX vectors_generation ON vectors (space, generation);
CREATE TABLE graves (space INTEGER NOT NULL, row INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX graves_generation ON graves (space, generation);
CREATE TABLE snapshots (space INTEGER PRIMARY KEY, tag TEXT NOT NULL, generation INTEGER NOT NULL);
INSERT INTO meta VALUES ('generation', 0);
"""


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """SQLite's own errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"the store does not answer: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"the store failed: {error}") from error


class SqliteFile:
    """Connections to one file. Raises StoreForeign, StoreTooNew, AnalyzerMismatch, StoreUnavailable."""

    def __init__(self, path: Path, analyzer: str, *, any_analyzer: bool = False) -> None:
        self.path = path
        self._readers: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue(READERS_MAX)
        self._write_lock = threading.Lock()
        self._closed = False
        with translated():
            self._writer = self._connect()
        try:
            with translated():
                self._prepare(analyzer, any_analyzer=any_analyzer)
        except BaseException:
            self._writer.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA mmap_size = 268435456")
        return connection

    def _prepare(self, analyzer: str, *, any_analyzer: bool) -> None:
        try:
            version = self._writer.execute("PRAGMA user_version").fetchone()[0]
            application = self._writer.execute("PRAGMA application_id").fetchone()[0]
            empty = not self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise StoreForeign(f"{self.path} is no SQLite file") from error
        if application != APPLICATION_ID and not empty:
            raise StoreForeign(f"{self.path} is a database of something else; name another file")
        if version > SCHEMA:
            raise StoreTooNew(
                f"{self.path} has schema {version}, this tailrace knows {SCHEMA}; "
                "use the newer tailrace, or name another file"
            )
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = NORMAL")
        with self.writing() as connection:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES ('analyzer', ?)", (analyzer,))
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        held = self._writer.execute("SELECT value FROM meta WHERE key = 'analyzer'").fetchone()[0]
        if held != analyzer and not any_analyzer:
            raise AnalyzerMismatch(
                f"{self.path} was indexed by {held}, the analyser is {analyzer}; "
                "index it again with: tailrace books reindex"
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is written whole or not at all; one at a time."""
        with self._write_lock, translated():
            self._alive()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file for as long as it is held."""
        with translated():
            self._alive()
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
            return
        try:
            self._readers.put_nowait(connection)
        except queue.Full:
            connection.close()

    def _alive(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def close(self) -> None:
        """Close every connection; the log is folded into the file."""
        with self._write_lock:
            if self._closed:
                return
            self._closed = True
            while not self._readers.empty():
                self._readers.get_nowait().close()
            self._writer.close()
