"""What the pages show can be typed, and where they point to there is something."""

import json
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
import typer
from documents import PAGES, READMES, ROOT, code_blocks, named
from reference_http import openapi

from tailrace.apps.api.settings import ApiSettings
from tailrace.apps.books.settings import BooksSettings
from tailrace.apps.review.settings import BoxSettings
from tailrace.bench.scenario import Scenario
from tailrace.cli.main import app
from tailrace.wire.headers import parse_server_timing

COMMAND = typer.main.get_command(app)
MAKE_VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PLACEHOLDERS = {"URL": "http://127.0.0.1:8000/api", "N": "12", "FILE": "configs/review.toml"}
BESIDE_THE_DOCUMENT = {"/api/docs", "/api/openapi.json", "/"}


def parses(line: str) -> None:
    """Parse one command line as far as can be done without running it."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line, comments=True)]
    while "=" in words[0]:
        words.pop(0)
    assert words.pop(0) == "tailrace"
    command, path = COMMAND, ["tailrace"]
    while hasattr(command, "commands"):
        if not words or words[0] in {"--help", "--version"}:
            return
        otherwise = getattr(command, "otherwise", None)
        path.append(
            words.pop(0) if otherwise is None or words[0] in command.commands else otherwise
        )
        assert path[-1] in command.commands, f"there is no command {' '.join(path)}"
        command = command.commands[path[-1]]
    if "--help" not in words and words:
        command.make_context(" ".join(path), words)


def shell_lines(page: Path) -> list[str]:
    """What a reader is told to type."""
    lines = [line for block in code_blocks(page, "sh") for line in block.splitlines()]
    for block in code_blocks(page, "console"):
        lines += [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return lines


COMMAND_LINES = [
    (page, line)
    for page in PAGES
    for line in [
        *shell_lines(page),
        *re.findall(r"`(tailrace [^`]+)`", page.read_text(encoding="utf-8")),
    ]
    if re.match(r"([A-Z_]+=\S+ )*tailrace ", line)
]


@pytest.mark.parametrize(("page", "line"), COMMAND_LINES, ids=lambda v: getattr(v, "name", v))
def test_every_command_line_parses(page, line):
    try:
        parses(line)
    except click.UsageError as error:
        pytest.fail(f"{page.name}: {line}: {error}")


def help_examples(command: click.Command = COMMAND) -> list[str]:
    """The command lines in the help texts of all commands."""
    below = getattr(command, "commands", {}).values()
    found = re.findall(r"^\s*((?:[A-Z_]+=\S+ )*tailrace .+)$", command.help or "", re.MULTILINE)
    return found + [line for other in below for line in help_examples(other)]


@pytest.mark.parametrize("line", help_examples())
def test_every_example_of_the_help_parses(line):
    parses(line.split(" | ")[0])


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_every_make_verb_exists(page):
    text = page.read_text(encoding="utf-8")
    for verbs in re.findall(r"(?:^|`)make ([a-z -]+?)(?=`|\s*#|$|:)", text, re.MULTILINE):
        for verb in verbs.split():
            assert verb in MAKE_VERBS, f"make {verb}"


API = "http://127.0.0.1:8080"


@cache
def paths() -> dict[str, re.Pattern[str]]:
    """The paths of the OpenAPI document, as patterns."""
    return {
        path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$") for path in openapi()["paths"]
    }


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_every_path_exists(page):
    text = page.read_text(encoding="utf-8")
    mentioned = set(re.findall(r"`(?:GET |POST )?(/(?:api/[^`*]*|livez|readyz|metrics))`", text))
    mentioned |= {"/api" + path for path in re.findall(r"\$B(/\S+)", text)}
    mentioned |= set(re.findall(r"http://127\.0\.0\.1:8000(/[\w/-]+)", text)) - {"/api"}
    known = paths()
    for path in mentioned - BESIDE_THE_DOCUMENT:
        assert any(pattern.match(path) for pattern in known.values()), path


def test_curl_examples_fit_their_entry():
    """A curl with a body is a POST, and its body is the JSON that the entry takes."""
    document = openapi()["paths"]
    for readme in READMES:
        curls = [line for line in shell_lines(readme) if line.startswith("curl")]
        curls = [line for line in curls if API not in line]  # those are run, by test_migrate
        assert len(curls) >= 4
        for line in curls:
            words = shlex.split(line.split(" | ")[0])
            target = next(word for word in words if word.startswith("$B"))
            path = next(p for p, known in paths().items() if known.match("/api" + target[2:]))
            assert ("post" if "-d" in words else "get") in document[path]
            if "-d" in words:
                assert json.loads(words[words.index("-d") + 1])["text"]


@pytest.mark.parametrize("readme", READMES, ids=named(READMES))
def test_shown_timings_add_up(readme):
    shown = re.findall(r"^server-timing: (.*)$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    for value in shown:
        timing = parse_server_timing(value)
        total = timing.pop("total")
        assert sum(timing.values()) == pytest.approx(total, abs=0.05)


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_every_toml_block_is_a_configuration(page):
    for block in code_blocks(page, "toml"):
        tree = tomllib.loads(block)
        if "question" in tree:
            Scenario.model_validate(tree)
            continue
        books = {"llm", "store", "cover"} & set(tree)
        kind = ApiSettings if "models" in tree else BooksSettings if books else BoxSettings
        kind.model_validate(tree)


@pytest.mark.parametrize("readme", READMES, ids=named(READMES))
def test_configuration_is_shown_in_ten_lines(readme):
    (block,) = code_blocks(readme, "toml")
    assert len(block.splitlines()) <= 10


@pytest.mark.parametrize("readme", READMES, ids=named(READMES))
def test_the_first_screen(readme):
    """What it is, a picture, the two commands."""
    first = "\n".join(readme.read_text(encoding="utf-8").splitlines()[:16])
    assert re.search(r"!\[[^]]+\]\(docs/screenshots/box-(en|ko)-light\.png\)", first)
    assert "make serve" in first
    assert "make test" in first


def test_the_readmes_are_of_one_shape():
    english, korean = (readme.read_text(encoding="utf-8") for readme in READMES)
    for pattern in (r"^## ", r"^```\w+", r"^\| `", r"^- \*\*"):
        ours, theirs = (re.findall(pattern, text, re.MULTILINE) for text in (english, korean))
        assert len(ours) == len(theirs), pattern
    assert "(README.ko.md)" in english
    assert "(README.md)" in korean


def links(page: Path) -> list[str]:
    """Where a page points to, inside the repository."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not link.startswith(("http:", "https:", "mailto:"))]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_every_link_leads_somewhere(page):
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if target.suffix == ".png":
            continue
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_picture_is_there():
    pictures = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in links(page)
        if link.endswith(".png")
    }
    assert pictures
    if not (ROOT / "docs" / "screenshots").exists():
        pytest.skip("the page's pictures have not been taken yet")
    assert all(picture.exists() for picture in pictures)


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_decisions_are_numbered_and_listed():
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert [int(file.name[:4]) for file in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for file in DECISIONS:
        assert f"({file.name})" in index


@pytest.mark.parametrize("file", DECISIONS, ids=[file.stem for file in DECISIONS])
def test_a_decision_is_short_and_has_three_parts(file):
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"# {file.name[:4]}: ")
    assert len(text.splitlines()) <= 14
    for part in ("Context", "Choice", "Price"):
        assert f"**{part}.** " in text


def test_the_glossary_is_in_order_and_each_word_once():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    assert words == sorted(words, key=str.lower)
    assert len(words) == len(set(words))


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_no_page_names_a_place_on_one_machine(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(home|root|work|Users|tmp)/", text)
