"""The front of the command: its version, what a group says alone, one name for one option."""

import re
from pathlib import Path

import pytest
import typer
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


GROUPS = {
    name: group
    for name, group in typer.main.get_command(app).commands.items()
    if getattr(group, "commands", None) and not group.invoke_without_command
}


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_a_group_named_alone_shows_its_verbs(name: str) -> None:
    assert GROUPS[name].no_args_is_help


def test_the_language_of_a_report_is_asked_for_by_one_name() -> None:
    def options(command) -> set[str]:
        own = {option for one in command.params for option in one.opts}
        return own.union(*(options(verb) for verb in getattr(command, "commands", {}).values()))

    assert "--lang" in options(typer.main.get_command(app))
    assert "--language" not in options(typer.main.get_command(app))
