"""`tailrace books`: the book service and what is done with its store."""

import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.apps.books.app import books_app
from tailrace.apps.books.server import BooksServer
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.books_ingest import ingest_files
from tailrace.cli.books_migrate import migrate
from tailrace.cli.books_quality import quality
from tailrace.cli.books_reindex import reindex
from tailrace.cli.console import err, fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.serve.access import write_access
from tailrace.serve.runner import bind, run
from tailrace.serve.settings import BadConfiguration, load

app = typer.Typer(
    name="books",
    no_args_is_help=True,
    help="Hybrid search over books, with an embedding model of one's own.",
)

app.command()(quality)
app.command("ingest")(ingest_files)
app.command()(migrate)
app.command()(reindex)

Config = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file of settings.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")]
Check = Annotated[bool, typer.Option("--check", help="Print the resolved settings and leave.")]


@app.command()
def serve(
    config: Config = None, host: Host = None, port: Port = None, check: Check = False
) -> None:
    """Serve the books; an empty store is filled with the catalogue that ships.

    Examples:
      tailrace books serve
      tailrace books serve --port 8090 --config configs/books.toml

    """
    overrides = {"server.host": host, "server.port": port}
    try:
        settings = load(BooksSettings, config, overrides=overrides)
        if check:
            out.print_json(settings.model_dump_json())
            return
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
        write_access(to_stderr=False)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        listener = bind(settings.server.host, settings.server.port)
        with progress_bar() as progress:
            server = BooksServer(settings, progress)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except TailraceError as error:
        fail(str(error))
    address = listener.getsockname()

    def started() -> None:
        documents = server.store.stats().documents
        err.print(f"[bold green]ready[/] http://{address[0]}:{address[1]}  ({documents} books)")
        if problem := server.mismatch():
            said = f"searches are answered by the keyword leg alone: {problem}"
            err.print(f"[bold yellow]degraded[/] {escape(said)}", soft_wrap=True)

    grace_s = settings.server.drain_grace_s
    run(books_app(server), listener, grace_s=grace_s, started=started, stopping=lambda: None)
