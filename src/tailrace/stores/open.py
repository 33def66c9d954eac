"""Opening a store by its address: a file, or a PostgreSQL URL."""

from pathlib import Path

from tailrace.stores.errors import StoreUnavailable
from tailrace.stores.port import Analyzer, Indexed, Store
from tailrace.stores.sqlite import SqliteStore

POSTGRES = ("postgresql://", "postgres://")
"""How the address of a database begins; any other is a file."""


def open_store(address: str, analyzer: Analyzer, *, reindex: Indexed | None = None) -> Store:
    """The store at `postgresql://…`, or in the file of that name, made where it is not there yet.

    With `reindex` its keyword index is made again by this analyser, whole or not at all.

    Raises StoreUnavailable, StoreTooNew, StoreForeign, AnalyzerMismatch.
    """
    if not address.startswith(POSTGRES):
        path = Path(address).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        return SqliteStore(path, analyzer, reindex=reindex)
    try:
        from tailrace.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise StoreUnavailable(
            f"the PostgreSQL store needs more: pip install 'tailrace[postgres]' ({error})"
        ) from error
    return PostgresStore(address, analyzer, reindex=reindex)
