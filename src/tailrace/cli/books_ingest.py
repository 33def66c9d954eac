"""`tailrace books ingest`: files of documents into a store, directly or through a running service."""

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from tailrace.apps.books.posting import Posting
from tailrace.apps.books.server import BooksServer
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.console import err, fail, fail_configuration, progress_bar, step_back
from tailrace.core.errors import TailraceError
from tailrace.search.ingest import Ingested, batches, ingest
from tailrace.search.read_rows import Form, Row, read_rows
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.port import Document

STDIN = "-"
SHOWN_MAX = 5
"""Bad rows told on the terminal; all of them go to the file."""
COVERED = ("author", "category", "keywords", "description", "year")


class Reading:
    """The documents of some files, with the bad rows put aside and the share that was read."""

    def __init__(self, files: list[Path], form: Form | None, rejects: Path) -> None:
        self._files = files
        self._form = form
        self._rejects = rejects
        self._sizes = [0 if str(file) == STDIN else file.stat().st_size for file in files]
        self._read = 0
        self.bad = 0
        self.good = 0
        self.fields: Counter[str] = Counter()

    @property
    def share(self) -> float | None:
        """How much of the files was read; None where that cannot be known."""
        return self._read / sum(self._sizes) if all(self._sizes) else None

    def documents(self) -> Iterator[Document]:
        """All good rows."""
        before = 0
        with contextlib.ExitStack() as stack:
            aside: TextIO | None = None
            for file, size in zip(self._files, self._sizes, strict=True):
                for row in self._rows(file):
                    self._read = before + min(row.bytes, size)
                    if row.document is not None:
                        self._count(row.document)
                        yield row.document
                        continue
                    if aside is None:
                        aside = stack.enter_context(self._rejects.open("w", encoding="utf-8"))
                    self._put_aside(aside, file, row)
                before += size

    def _rows(self, file: Path) -> Iterator[Row]:
        form: Form = self._form or ("csv" if file.suffix.lower() == ".csv" else "jsonl")
        if str(file) == STDIN:
            yield from read_rows(sys.stdin, form)
            return
        with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
            yield from read_rows(lines, form)

    def _count(self, document: Document) -> None:
        self.good += 1
        self.fields.update(name for name in COVERED if getattr(document, name))

    def _put_aside(self, aside: TextIO, file: Path, row: Row) -> None:
        self.bad += 1
        said = {"file": str(file), "line": row.line, "why": row.fault, "row": row.text}
        aside.write(json.dumps(said) + "\n")
        if self.bad <= SHOWN_MAX:
            err.print(f"{file}, line {row.line}: {row.fault}", markup=False, soft_wrap=True)


def ingest_files(
    files: Annotated[list[Path], typer.Argument(help="JSONL or CSV; - is standard input.")],
    url: Annotated[
        str | None, typer.Option(help="A running service; else the store itself.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file.")] = None,
    form: Annotated[
        Literal["jsonl", "csv"] | None, typer.Option("--format", help="By default by the name.")
    ] = None,
    rejects: Annotated[Path, typer.Option(help="Where rows that are no documents go.")] = Path(
        "rejected.jsonl"
    ),
) -> None:
    """Write documents with their vectors. What is there as it is costs nothing, so run it again after a stop.

    Examples:
      tailrace books ingest new.jsonl
      tailrace books ingest --url http://127.0.0.1:8090 new.csv
      zcat all.jsonl.gz | tailrace books ingest -

    """
    missing = [str(file) for file in files if str(file) != STDIN and not file.is_file()]
    if missing:
        fail(f"there is no file {missing[0]}")
    reading = Reading(files, form, rejects)
    try:
        steps = _through(url, reading) if url else _directly(config, reading)
        done, seconds = _follow(steps, reading)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except (TailraceError, OSError) as error:
        fail(f"{error} What was written stays; run it again to go on.")
    _tell(done, seconds, reading, rejects)


def _directly(config: Path | None, reading: Reading) -> Iterator[Ingested]:
    settings = load(BooksSettings, config, overrides={"store.catalogue": False})
    step_back()
    with progress_bar() as progress:
        server = BooksServer(settings, progress)
    try:
        space, embed = server.embedder.space, server.embedder.documents_now
        yield from ingest(server.store, space, embed, reading.documents())
        with progress_bar() as progress:
            progress("building the index", 1.0)
            server.store.build_index(space)
    finally:
        server.close()


def _through(url: str, reading: Reading) -> Iterator[Ingested]:
    posting, done = Posting(url), Ingested()
    for batch in batches(reading.documents()):
        posting.post(batch, done)
        yield done


def _follow(steps: Iterator[Ingested], reading: Reading) -> tuple[Ingested, float]:
    """Run it, with a bar; returns what was done and in how many seconds."""
    columns = (
        TextColumn("{task.description:<32}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    done, began = Ingested(), time.monotonic()
    with Progress(*columns, console=err, transient=True) as bars:
        bar: TaskID = bars.add_task("ingesting", total=None)
        for done in steps:
            rate = done.documents / max(time.monotonic() - began, 1e-9)
            total = None if reading.share is None else 1.0
            what = f"{done.documents} documents, {rate:.0f}/s"
            bars.update(bar, description=what, total=total, completed=reading.share or 0.0)
    return done, time.monotonic() - began


def _tell(done: Ingested, seconds: float, reading: Reading, rejects: Path) -> None:
    rate = done.documents / max(seconds, 1e-9)
    err.print(
        f"{done.documents} documents in {seconds:.1f} s ({rate:.0f}/s): {done.inserted} new, "
        f"{done.updated} changed, {done.unchanged} as they were"
    )
    if reading.good:
        covered = ", ".join(f"{name} {reading.fields[name] / reading.good:.0%}" for name in COVERED)
        err.print(f"fields: {covered}")
    if reading.bad:
        err.print(f"[bold yellow]{reading.bad} bad rows[/], put aside in {rejects}")
