"""`tailrace serve`: the review box."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from tailrace.apps.review.app import event_stream, review_app
from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.start import open_box
from tailrace.cli.console import err, fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.serve.runner import bind, run
from tailrace.serve.settings import BadConfiguration, load

Config = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file of settings.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")]
Check = Annotated[bool, typer.Option("--check", help="Print the resolved settings and leave.")]


def serve(
    config: Config = None, host: Host = None, port: Port = None, check: Check = False
) -> None:
    """Serve the review box: one slow model, four doors, and a page that shows the difference.

    Examples:
      tailrace serve
      tailrace serve --port 8010
      tailrace serve --config configs/review-bge.toml
      TAILRACE__LANE__BATCH__WINDOW_MS=50 tailrace serve --check

    """
    overrides = {"server.host": host, "server.port": port}
    try:
        settings = load(BoxSettings, config, overrides=overrides)
    except BadConfiguration as bad:
        fail_configuration(bad)
    if check:
        out.print_json(settings.model_dump_json())
        return
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        listener = bind(settings.server.host, settings.server.port)
        with progress_bar() as progress:
            box = open_box(settings, progress)
    except BadConfiguration as bad:
        fail_configuration(bad)
    except TailraceError as error:
        fail(str(error))
    address = listener.getsockname()
    url = f"http://{address[0]}:{address[1]}"

    def started() -> None:
        info = box.model.info
        err.print(f"[bold green]ready[/] {url}  (model {info.name}, {info.fingerprint[:12]})")

    stream = event_stream(box)
    grace_s = settings.server.drain_grace_s
    run(review_app(box, stream), listener, grace_s=grace_s, started=started, stopping=stream.close)
