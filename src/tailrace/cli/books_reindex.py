"""`tailrace books reindex`: the keyword index of a store, made again by the analyser of the settings."""

import contextlib
import time
from pathlib import Path
from typing import Annotated

import typer

from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.books_store import check_there
from tailrace.cli.console import fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.search.analyzers import analyzer_named
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.errors import AnalyzerMismatch
from tailrace.stores.open import open_store
from tailrace.stores.port import Analyzer


def reindex(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Although it is indexed by this analyser already.")
    ] = False,
) -> None:
    """Make the keyword index again by `store.analyzer`. Vectors stay; whole or not at all.

    Examples:
      TAILRACE__STORE__ANALYZER=morphemes tailrace books reindex
      tailrace books reindex --config configs/books.toml --force

    """
    try:
        settings = load(BooksSettings, config)
        check_there(settings)
        address, analyzer = settings.store.address(), analyzer_named(settings.store.analyzer)
        if not force and _indexed(address, analyzer):
            out.print(
                f"indexed by {analyzer.fingerprint} already, nothing to do; --force does it again"
            )
            return
        _again(address, analyzer)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except (TailraceError, OSError) as error:
        fail(str(error))


def _indexed(address: str, analyzer: Analyzer) -> bool:
    try:
        with contextlib.closing(open_store(address, analyzer)):
            return True
    except AnalyzerMismatch:
        return False


def _again(address: str, analyzer: Analyzer) -> None:
    began = time.monotonic()
    with progress_bar() as progress:

        def tell(done: int, documents: int) -> None:
            progress(f"indexing {documents} documents", done / documents)

        with contextlib.closing(open_store(address, analyzer, reindex=tell)) as store:
            documents = store.stats().documents
    out.print(
        f"{documents} documents indexed by {analyzer.fingerprint} in "
        f"{time.monotonic() - began:.1f} s; start a running service again with this `analyzer`",
        soft_wrap=True,
    )
