"""The command `tailrace` and its verbs."""

import typer

from tailrace.cli.api import api
from tailrace.cli.burst import burst
from tailrace.cli.calibrate import calibrate
from tailrace.cli.models import app as models
from tailrace.cli.serve import serve

app = typer.Typer(
    name="tailrace",
    help="A slow model and a crowd: serve it honestly, measure every millisecond.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(api)
app.command()(calibrate)
app.command()(burst)
app.add_typer(models, name="models")

if __name__ == "__main__":
    app()
