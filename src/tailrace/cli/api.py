"""`tailrace api`: the embedding and rerank server."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from tailrace.apps.api.app import api_app
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.cli.console import err, fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.serve.access import write_access
from tailrace.serve.runner import bind, run
from tailrace.serve.settings import BadConfiguration, load

Config = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file of settings.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")]
Check = Annotated[bool, typer.Option("--check", help="Print the resolved settings and leave.")]


def api(config: Config = None, host: Host = None, port: Port = None, check: Check = False) -> None:
    """Serve embeddings and reranking in the dialects clients already speak.

    Examples:
      tailrace api
      tailrace api --port 7997
      tailrace api --config configs/api.toml --check

    """
    overrides = {"server.host": host, "server.port": port}
    try:
        settings = load(ApiSettings, config, overrides=overrides)
        if check:
            out.print_json(settings.model_dump_json())
            return
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
        write_access(to_stderr=settings.server.access_log == "json")
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        listener = bind(settings.server.host, settings.server.port)
        with progress_bar() as progress:
            server = ApiServer(settings, progress)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except TailraceError as error:
        fail(str(error))
    address = listener.getsockname()

    def started() -> None:
        names = ", ".join(offer.served.name for offer in server.catalogue.offers)
        err.print(f"[bold green]ready[/] http://{address[0]}:{address[1]}  ({names})")

    run(
        api_app(server),
        listener,
        grace_s=settings.server.drain_grace_s,
        started=started,
        stopping=lambda: None,
        drain=server.drain,
        notice_s=settings.server.drain_notice_s,
    )
