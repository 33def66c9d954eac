"""The PostgreSQL side of a store: its tables, its connections, its one writer at a time.

Everything lives in one schema of the database. Knows no search.
"""

import contextlib
import logging
import queue
from collections.abc import Iterator

import psycopg
from psycopg import Connection, IsolationLevel
from psycopg.rows import TupleRow

from tailrace.stores.errors import (
    AnalyzerMismatch,
    BadDocument,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
)

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
"""The version of the tables below; a schema of a newer one is refused."""

CONNECTIONS_MAX = 8
"""Connections kept open; more are opened when needed and closed after use."""

CONNECT_S = 5
"""Seconds in which a connection must be made."""

PGVECTOR_LEAST = (0, 8)
"""The first pgvector that goes on looking when a filter throws its finds away."""

PGVECTOR_SOUND = (0, 8, 4)
"""Before this one, vacuuming an HNSW index can leave it damaged (pgvector 993)."""

Row = TupleRow

_TABLES = """
CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE documents (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
    digest text NOT NULL, body text NOT NULL, category text COLLATE "C", year integer,
    author text NOT NULL, lexemes tsvector NOT NULL, frequencies jsonb NOT NULL,
    fields text NOT NULL, length integer NOT NULL
);
CREATE INDEX ON documents (category);
CREATE INDEX ON documents (year);
CREATE INDEX ON documents USING gin (lexemes) WITH (fastupdate = off);
CREATE TABLE terms (term text COLLATE "C" PRIMARY KEY, documents bigint NOT NULL);
CREATE TABLE spaces (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, fingerprint text NOT NULL UNIQUE,
    space text NOT NULL, state text NOT NULL, canary_text text, canary bytea
);
CREATE TABLE graves (space integer NOT NULL, row bigint NOT NULL, generation bigint NOT NULL);
CREATE INDEX ON graves (space, generation);
INSERT INTO meta VALUES ('generation', '0'), ('documents', '0'), ('length', '0');
"""


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """The driver's errors as ours."""
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded as error:
        raise BadDocument(f"PostgreSQL cannot keep a document of this size: {error}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailable(f"PostgreSQL does not answer: {error}".strip()) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused: {error}".strip()) from error


class PostgresDatabase:
    """Connections to one schema. Raises StoreTooNew, AnalyzerMismatch, StoreUnavailable, StoreError."""

    def __init__(
        self, url: str, schema: str, analyzer: str, *, any_analyzer: bool, pgvector: bool
    ) -> None:
        if not schema.isidentifier() or not schema.isascii():
            raise StoreError(f"{schema!r} is no name for a schema: letters, digits and _ only")
        self._url = url
        self._schema = schema.lower()
        self._idle: queue.LifoQueue[Connection[Row]] = queue.LifoQueue(CONNECTIONS_MAX)
        self._closed = False
        self.pgvector: tuple[int, ...] | None = None
        self.warning = ""
        try:
            self._prepare(analyzer, any_analyzer=any_analyzer, pgvector=pgvector)
        except BaseException:
            self.close()
            raise

    def _prepare(self, analyzer: str, *, any_analyzer: bool, pgvector: bool) -> None:
        with self.writing() as connection:
            if connection.info.server_version < 150000:
                raise StoreError(
                    f"PostgreSQL {connection.info.server_version // 10000} is too old; 15 or newer"
                )
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            found = connection.execute("SELECT to_regclass('meta') IS NOT NULL").fetchone()
            if not (found and found[0]):
                connection.execute(_TABLES)
                connection.execute(
                    "INSERT INTO meta VALUES ('schema', %s), ('analyzer', %s), ('pgvector', %s)",
                    (str(SCHEMA_VERSION), analyzer, self._make_extension(connection, pgvector)),
                )
            meta: dict[str, str] = dict(
                connection.execute("SELECT key, value FROM meta").fetchall()
            )
            self._check(meta, analyzer, any_analyzer=any_analyzer)
            if meta["pgvector"] == "yes":
                self._look_at_extension(connection)

    def _make_extension(self, connection: Connection[Row], wanted: bool) -> str:
        """Whether vectors are kept in pgvector's own type: decided once, when the tables are made."""
        query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if not wanted or connection.execute(query).fetchone() is None:
            return "no"
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except psycopg.errors.InsufficientPrivilege:
            logger.warning("pgvector is there but this role may not create it; doing without")
            return "no"
        self._look_at_extension(connection)
        return "yes" if self.pgvector and self.pgvector >= PGVECTOR_LEAST else "no"

    def _look_at_extension(self, connection: Connection[Row]) -> None:
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        found = connection.execute(query).fetchone()
        if found is None:
            raise StoreError("the store's vectors need the extension vector, which is gone")
        self.pgvector = tuple(int(part) for part in str(found[0]).split("."))
        if self.pgvector < PGVECTOR_LEAST:
            self.warning = f"pgvector {found[0]} is too old for filters; {PGVECTOR_LEAST} or newer"
        elif self.pgvector < PGVECTOR_SOUND:
            self.warning = f"pgvector {found[0]} may damage an HNSW index at vacuum; 0.8.4 mends it"
        if self.warning:
            logger.warning("%s", self.warning)

    def _check(self, meta: dict[str, str], analyzer: str, *, any_analyzer: bool) -> None:
        if int(meta["schema"]) > SCHEMA_VERSION:
            raise StoreTooNew(
                f"the schema {self._schema} is of version {meta['schema']}, this tailrace knows "
                f"{SCHEMA_VERSION}; use the newer tailrace, or name another schema"
            )
        if meta["analyzer"] != analyzer and not any_analyzer:
            raise AnalyzerMismatch(
                f"the store was indexed by {meta['analyzer']}, the analyser is {analyzer}; "
                "index it again with: tailrace books reindex"
            )

    def _connect(self) -> Connection[Row]:
        return Connection[Row].connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            options=f"-c search_path={self._schema},public",
        )

    @contextlib.contextmanager
    def _connection(self, isolation: IsolationLevel) -> Iterator[Connection[Row]]:
        with translated():
            if self._closed:
                raise StoreUnavailable("the store is closed")
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = self._connect()
            try:
                connection.isolation_level = isolation
                with connection.transaction():
                    yield connection
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self._forget()  # the server went: whatever is idle is of no use either
                raise
            finally:
                self._give_back(connection)

    def writing(self) -> contextlib.AbstractContextManager[Connection[Row]]:
        """A transaction that is written whole or not at all; one at a time, over all processes."""
        return self._writing()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection[Row]]:
        with self._connection(IsolationLevel.READ_COMMITTED) as connection:
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtext(%s))", (f"tailrace.{self._schema}",)
            )
            yield connection

    def reading(self) -> contextlib.AbstractContextManager[Connection[Row]]:
        """A connection that sees one state of the tables for as long as it is held."""
        return self._connection(IsolationLevel.REPEATABLE_READ)

    @contextlib.contextmanager
    def bare(self) -> Iterator[Connection[Row]]:
        """A connection of its own, outside any transaction: for building an index beside the traffic."""
        with translated(), self._connect() as connection:
            yield connection

    def _give_back(self, connection: Connection[Row]) -> None:
        try:
            if not (self._closed or connection.broken or connection.closed):
                self._idle.put_nowait(connection)
                return
        except queue.Full:
            pass
        connection.close()

    def _forget(self) -> None:
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._forget()
