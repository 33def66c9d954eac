"""The verbs of the command line, each loaded when it is asked for.

A server needs nothing of what measures and simulates, and who asks for the version needs nothing at all.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

VERBS: Mapping[str, str] = {
    "serve": "tailrace.cli.serve:serve",
    "api": "tailrace.cli.api:api",
    "calibrate": "tailrace.cli.calibrate:calibrate",
    "burst": "tailrace.cli.burst:burst",
    "cost": "tailrace.cli.cost:cost",
    "books": "tailrace.cli.books:app",
    "compare": "tailrace.cli.compare:compare_runs",
    "probe": "tailrace.cli.probe:probe",
    "watch": "tailrace.cli.watch:watch",
    "models": "tailrace.cli.models:app",
    "bench": "tailrace.cli.bench:app",
    "runs": "tailrace.cli.runs:app",
    "demo": "tailrace.cli.demo:app",
    "whatif": "tailrace.cli.whatif:app",
}
"""Where each is found: a function, or verbs of its own."""


class Loaded(Mapping[str, Any]):
    """Commands by name; looking one up loads it."""

    def __iter__(self) -> Iterator[str]:
        """The names, as the help shows them."""
        return iter(VERBS)

    def __len__(self) -> int:
        """How many there are."""
        return len(VERBS)

    def __contains__(self, name: object) -> bool:
        """Whether there is one of this name; loads nothing."""
        return name in VERBS

    def __getitem__(self, name: str) -> Any:
        """The command; raises KeyError."""
        module, _, attribute = VERBS[name].partition(":")
        found = getattr(import_module(module), attribute)
        around = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
        around.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name)
        else:
            around.command(name)(found)
        return get_group(around).commands[name]


class Verbs(TyperGroup):
    """The group of all verbs; only `--help` loads them all."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        self.commands = Loaded()  # type: ignore[assignment]  # nobody adds to them
