"""What the migration pages tell a reader to type does what they say."""

import json
import os
import shutil
import subprocess
import tomllib

import pytest
from documents import ROOT, code_blocks

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
