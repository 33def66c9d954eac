"""The command `tailrace` and its verbs."""

import sys
from typing import Annotated

import typer
from rich.markup import escape

from tailrace import __version__
from tailrace.cli.console import INTERRUPTED, err, out
from tailrace.cli.verbs import Verbs

app = typer.Typer(
    name="tailrace",
    cls=Verbs,
    help="A slow model and a crowd: serve it honestly, measure every millisecond.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def tell_version(asked: bool) -> None:
    """`--version`: one line, and nothing else is done."""
    if asked:
        out.print(f"tailrace {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=tell_version, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """What comes before a verb."""


def main() -> None:
    """Run the command line; what was typed wrong is one line and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except Exception as error:
        # What is wrong with the words typed knows how to say so; typer keeps the class to itself.
        say = getattr(error, "format_message", None)
        if say is None:
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tailrace"
        if message := say().strip():  # without one the help was shown
            line = f"[bold red]tailrace:[/] {escape(message)} See: {command} --help"
            err.print(line, soft_wrap=True)
        code = 2
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
