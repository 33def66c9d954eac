"""`tailrace --version` says which version it is, the one that the package declares."""

import re
from pathlib import Path

from typer.testing import CliRunner

import tailrace
from tailrace.cli.main import app

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_says_its_version_and_nothing_else() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0
    assert told.output == f"tailrace {tailrace.__version__}\n"


def test_the_version_is_the_one_of_the_package() -> None:
    written = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert written is not None
    assert written[1] == tailrace.__version__
