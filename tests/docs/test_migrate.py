"""What the migration pages tell a reader to type does what they say."""

import itertools
import json
import os
import shutil
import subprocess
import tomllib

import pytest
from documents import READMES, ROOT, code_blocks

from apis import Api
from tailrace.apps.api.settings import ApiSettings

PAGES = [ROOT / "docs" / "howto" / name for name in ("migrate.md", "migrate.ko.md")]
SHOWN = "http://127.0.0.1:8080"


def lines(page):
    return [line for block in code_blocks(page, "sh") for line in block.splitlines()]


CURLS = [line for line in lines(PAGES[0]) if line.startswith("curl")]


@pytest.mark.model
@pytest.mark.parametrize("line", CURLS)
def test_every_request_is_answered(api: Api, line):
    if shutil.which("curl") is None and not os.environ.get("TAILRACE_CI"):
        pytest.skip("there is no curl here")
    typed = line.replace(SHOWN, api.url).replace("curl ", "curl -sS --fail-with-body ", 1)
    assert api.url in typed
    environ = {**os.environ, "NO_PROXY": "*"}
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, timeout=30, env=environ, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)


def shown(readme):
    """The requests to the model server that a readme shows, each with the answer below it."""
    blocks = [block.splitlines() for block in code_blocks(readme, "console")]
    pairs = [pair for block in blocks for pair in itertools.pairwise(block)]
    return [(ask[2:], answer) for ask, answer in pairs if ask.startswith("$ curl") and SHOWN in ask]


def alike(given, wanted):
    """Whether two answers are the same but for an id, and for rounding."""
    if isinstance(wanted, dict):
        same = given.keys() == wanted.keys()
        return same and all(alike(given[k], wanted[k]) for k in wanted if k != "id")
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(alike, given, wanted))
    return (
        given == pytest.approx(wanted, abs=2e-3) if isinstance(wanted, float) else given == wanted
    )


def test_the_readmes_show_the_same_requests():
    assert len(shown(READMES[0])) == 3
    assert shown(READMES[0]) == shown(READMES[1])


@pytest.mark.model
@pytest.mark.parametrize(("ask", "answer"), shown(READMES[0]))
def test_the_readme_shows_what_is_answered(api: Api, ask, answer):
    typed = ask.replace(SHOWN, api.url)
    environ = {**os.environ, "NO_PROXY": "*"}
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, timeout=30, env=environ, check=False
    )
    assert alike(json.loads(done.stdout), json.loads(answer)), done.stdout


def test_both_languages_say_the_same():
    english, korean = PAGES
    assert lines(english) == lines(korean)
    assert code_blocks(english, "toml") == code_blocks(korean, "toml")
    for sign in ("## ", "| "):
        ours, theirs = (
            [
                line
                for line in page.read_text(encoding="utf-8").splitlines()
                if line.startswith(sign)
            ]
            for page in PAGES
        )
        assert len(ours) == len(theirs)


def test_the_file_that_is_shown_can_be_used():
    (block,) = code_blocks(PAGES[0], "toml")
    offers = ApiSettings.model_validate(tomllib.loads(block)).models
    assert {offer.kind for offer in offers} == {"embedding", "rerank"}
