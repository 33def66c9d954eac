"""`tailrace books migrate`: another embedding model under the store, as a procedure with a way back."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Table

from tailrace.apps.books.catalogue import QUERIES
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.apps.books.migration import Migration
from tailrace.apps.books.server import open_store
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.books_store import check_there
from tailrace.cli.console import err, fail, fail_configuration, out, progress_bar, step_back
from tailrace.core.errors import InputError, TailraceError
from tailrace.models.port import Progress
from tailrace.search.gate import Gate
from tailrace.search.migrate import Filled, named, roll_back
from tailrace.search.quality import judged_queries, read_queries
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.port import Store


def migrate(
    to: Annotated[
        str | None, typer.Option(help="The model: dir:PATH, hf:ORG/NAME, package:NAME.")
    ] = None,
    present: Annotated[
        str | None, typer.Option("--from", help="The model in use; by default the configured one.")
    ] = None,
    queries: Annotated[
        Path,
        typer.Option(
            help="Labelled queries for the recall gate.", show_default="the dev queries that ship"
        ),
    ] = QUERIES,
    force: Annotated[
        bool, typer.Option("--force", help="Switch although the gate cannot decide.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="List the spaces of the store.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Go back to the space that was kept.")
    ] = False,
    space: Annotated[
        str | None, typer.Option(help="With --rollback: which, where several are kept.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Forget a space and its vectors.")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file.")] = None,
) -> None:
    """Change the embedding model: fill a second space, judge it, switch. Run it again after a stop.

    Exit code 1 where the recall gate does not let it switch.

    Examples:
      tailrace books migrate --to dir:models/new
      tailrace books migrate --status
      tailrace books migrate --rollback
      tailrace books migrate --drop 0123456789abcdef

    """
    if sum((to is not None, status, rollback, drop is not None)) != 1:
        fail("say one of --to MODEL, --status, --rollback, --drop SPACE")
    try:
        settings = load(BooksSettings, config)
        with contextlib.closing(_opened(settings)) as store:
            if to is not None:
                _go_over(settings, store, to, present or settings.model.source, queries, force)
            elif rollback:
                _go_back(store, space)
            elif drop is not None:
                _drop(store, drop)
            else:
                _list(store)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except (TailraceError, OSError) as error:
        fail(str(error))


def _opened(settings: BooksSettings) -> Store:
    check_there(settings)
    return open_store(settings)


def _go_over(
    settings: BooksSettings, store: Store, to: str, present: str, queries: Path, force: bool
) -> None:
    judged = judged_queries(read_queries(queries), queries)
    if store.space() is None:
        fail("the store has no vectors yet; fill it: tailrace books ingest FILE")
    step_back()
    with progress_bar() as progress:
        migration = Migration(settings, store, progress)
        with contextlib.closing(migration):
            new = migration.target(to)
            _follow(migration.fill(new), progress, "filling")
            progress("building the index", 1.0)
            migration.build_index(new)
            active = store.space()
            if active is not None and active.space == new.space:
                _print_end(store, new, "is the active space already, and every document is in it")
                return
            gate = migration.judge(new, judged, present)
            _tell(gate)
            if gate.verdict == "fail" or (gate.verdict == "not decidable" and not force):
                _refuse(gate)
            _follow(migration.take_over(new), progress, "switching")
    _print_end(store, new, "is the active space now")
    err.print(
        f"Start the service with model.source = {to}. The way back: tailrace books migrate "
        "--rollback. The space before stays until: tailrace books migrate --drop SPACE",
        markup=False,
        soft_wrap=True,
    )


def _refuse(gate: Gate) -> NoReturn:
    """Leave without switching; what was filled stays."""
    more = "; more --queries, or --from the model in use, or --force to switch all the same"
    how = more if gate.verdict == "not decidable" else ""
    err.print(f"not switched, the space filled stays beside{how}", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def _follow(steps: Iterator[Filled], progress: Progress, what: str) -> None:
    began = time.monotonic()
    for step in steps:
        rate = step.taken / max(time.monotonic() - began, 1e-9)
        share = step.vectors / max(step.documents, 1)
        progress(f"{what}: {step.vectors} of {step.documents}, {rate:.0f}/s", min(share, 1.0))


def _tell(gate: Gate) -> None:
    before = "" if gate.before is None else f", before {gate.before.mean:.3f}"
    out.print(
        f"recall gate: {gate.verdict}. recall@10 {gate.after.mean:.3f}{before} over "
        f"{gate.queries} queries; {gate.why}",
        markup=False,
        soft_wrap=True,
    )


def _print_end(store: Store, new: ModelEmbedder, what: str) -> None:
    held = named(store.spaces(), new.space.fingerprint)
    said = f"{held.space.model} ({held.space.fingerprint}) {what}: {held.vectors} vectors"
    out.print(said, markup=False, soft_wrap=True)


def _go_back(store: Store, fingerprint: str | None) -> None:
    held = roll_back(store, fingerprint)
    out.print(
        f"{held.space.model} ({held.space.fingerprint}) is the active space again: "
        f"{held.vectors} vectors of {store.stats().documents} documents",
        markup=False,
        soft_wrap=True,
    )
    if store.missing(held.space, 1):
        err.print(
            "Documents written since have no vector in it and are found by words alone; fill it: "
            "tailrace books migrate --to MODEL with the model of this space",
            markup=False,
            soft_wrap=True,
        )


def _drop(store: Store, fingerprint: str) -> None:
    held = named(store.spaces(), fingerprint)
    if held.state == "active":
        raise InputError(f"{fingerprint} is the active space; switch to another one first")
    store.drop(held.space)
    said = f"{held.space.model} ({fingerprint}) is gone, with {held.vectors} vectors"
    out.print(said, markup=False, soft_wrap=True)


def _list(store: Store) -> None:
    documents = store.stats().documents
    table = Table("space", "model", "quantisation", "dimension", "state", "vectors", "documents")
    for held in store.spaces():
        one = held.space
        cells = (one.fingerprint, one.model, one.quantisation, str(one.dimension), held.state)
        table.add_row(*cells, str(held.vectors), str(documents))
    out.print(table)
