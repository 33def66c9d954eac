"""The client matrix: what each real client was seen to do, for the tests and for docs/reference/clients.md.

A row is written by a test that drives the client; TAILRACE_WRITE_CLIENTS=1 writes the page when all pass.
"""

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "clients.md"
PINS = (
    ROOT / "constraints.txt",
    ROOT / "constraints-clients.txt",
    ROOT / "tests/server/loose-clients.txt",
    ROOT / "tests/server/litellm/requirements.txt",
)
BEGIN, END = "<!-- begin matrix: written by make client-matrix -->", "<!-- end matrix -->"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """One client and what was proved with it."""

    client: str
    point_at: str
    entries: str
    note: str
    test: str


ROWS: list[Row] = []


def proves(client: str, point_at: str, entries: str, note: str = "") -> Callable[[F], F]:
    """Say what the test below proves; it is a row of the page."""

    def add(test: F) -> F:
        if all(row.test != test.__name__ for row in ROWS):  # a file may be imported twice
            ROWS.append(Row(client, point_at, entries, note, test.__name__))
        return test

    return add


def need(module: str) -> ModuleType:
    """A client's module; without it the test is skipped, except where CI runs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        if os.environ.get("TAILRACE_CI"):
            raise
        pytest.skip(f"{module} is not installed; `make client-matrix` installs the clients")


def pinned(client: str) -> str:
    """The version of a client that the tests are run with."""
    for file in PINS:
        if file.exists():
            text = file.read_text(encoding="utf-8")
            found = re.search(rf"^{re.escape(client)}==(\S+)", text, re.MULTILINE | re.IGNORECASE)
            if found:
                return found[1].rstrip("\\")
    raise LookupError(f"{client} is pinned nowhere")


def table() -> str:
    """The matrix as the page shows it."""
    lines = ["| client | version | point it at | entries | to know |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.client} | {pinned(row.client)} | `{row.point_at}` | {row.entries} | {row.note} |"
        for row in sorted(ROWS, key=lambda row: (row.client, row.entries))
    ]
    return "\n".join(lines)


def page() -> str:
    """The whole page with the table as it should be."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"
