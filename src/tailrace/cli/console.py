"""How the command line speaks: rich on a terminal, plain otherwise; errors in one line, exit code 2."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tailrace.serve.settings import BadConfiguration

PIPE_WIDTH = 150
"""Columns of a table that goes to a file or a pipe."""

NICENESS = 10
"""How far a long command steps back for a service beside it on the same cores."""

INTERRUPTED = 130
"""The exit code where Ctrl-C ended a command, as shells have it."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True, highlight=False)


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    err.print(f"[bold red]tailrace:[/] {escape(message)}", soft_wrap=True)
    raise typer.Exit(2)


def fail_configuration(bad: BadConfiguration) -> NoReturn:
    """All mistakes with their paths, exit code 2."""
    count = len(bad.mistakes)
    err.print(
        f"[bold red]tailrace:[/] {count} mistake{'s' if count > 1 else ''} in the configuration"
    )
    for path, what in bad.mistakes:
        err.print(f"  [bold]{escape(path)}[/]: {escape(what)}", soft_wrap=True)
    raise typer.Exit(2)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar for what takes longer than a second; gone when the block ends."""
    columns = (
        TextColumn("{task.description:<32}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        bar = bars.add_task("starting", total=1.0)

        def tell(what: str, share: float) -> None:
            bars.update(bar, description=what, completed=share)

        yield tell


def step_back() -> None:
    """Be polite to a service beside this command on the same cores."""
    os.nice(NICENESS)
