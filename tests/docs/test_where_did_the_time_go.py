"""What the guide tells a reader to type does what it says, in its order, against a real server."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, code_blocks

from apis import Api

pytestmark = pytest.mark.alone

PAGES = [ROOT / "docs" / "howto" / f"where-did-the-time-go{suffix}" for suffix in (".md", ".ko.md")]
SERVER = "tailrace api --port 8080"
BUSY = "not valid"
"""A machine that runs tests is busy: a run may be told to be invalid, and is kept all the same."""


def lines(page: Path) -> list[str]:
    return [line for block in code_blocks(page, "sh") for line in block.splitlines()]


@pytest.mark.model
def test_the_guide_can_be_typed_from_the_beginning_to_the_end(api: Api, tmp_path: Path):
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_PROXY": "*"}
    typed = lines(PAGES[0])
    assert typed.pop(0) == SERVER
    for line in typed:
        here = line.replace("http://127.0.0.1:8080", api.url)
        words = shlex.split(here.replace("=20s", "=4s"))
        assert words.pop(0) == "tailrace"
        if words[:2] == ["bench", "run"]:
            words += ["--target", f"{api.url}/v1"]
        done = subprocess.run(
            [sys.executable, "-m", "tailrace.cli.main", *words],
            capture_output=True,
            text=True,
            timeout=90,
            env=environ,
            cwd=tmp_path,
            check=False,
        )
        told = done.stdout + done.stderr
        assert "Traceback" not in told, told
        measured = words[:2] in (["bench", "run"], ["bench", "self-test"])
        allowed = {0, 1, 2} if words[0] == "compare" else {0, 2} if measured else {0}
        if words[0] == "watch":
            allowed = {0, 1} if "--once" in words else {0}
        assert done.returncode in allowed, f"{line}\n{told}"
        if words[:2] == ["bench", "run"] and done.returncode:
            assert BUSY in told
    assert "tailrace_watch_expired" in (tmp_path / "tailrace.prom").read_text(encoding="utf-8")
    for name in ("before", "after"):
        kept = tmp_path / "runs" / name
        assert (kept / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_both_languages_say_the_same():
    english, korean = PAGES
    assert lines(english) == lines(korean)
    assert code_blocks(english, "toml") == code_blocks(korean, "toml")
    for sign in ("## ", "| ", "1. "):
        ours, theirs = (
            sum(line.startswith(sign) for line in page.read_text(encoding="utf-8").splitlines())
            for page in PAGES
        )
        assert ours == theirs
