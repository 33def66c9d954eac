"""What the guide to traces tells a reader to type does what it says, against a real collector."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, code_blocks

from apis import opened, real_offers, serving_api
from collector import CLIENT, SERVER, collecting
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder

PAGES = [ROOT / "docs" / "howto" / f"traces{suffix}" for suffix in (".md", ".ko.md")]
COLLECTOR, SERVER_URL = "http://127.0.0.1:4318", "http://127.0.0.1:8080"


def lines(page: Path) -> list[str]:
    return [line for block in code_blocks(page, "sh") for line in block.splitlines()]


@pytest.mark.model
def test_the_guide_can_be_typed_and_every_request_is_one_trace(
    real_embedder: OnnxEmbedder, real_cross_encoder: OnnxCrossEncoder, tmp_path: Path
):
    typed = lines(PAGES[0])
    assert typed.pop(0) == f"OTEL_EXPORTER_OTLP_ENDPOINT={COLLECTOR} tailrace api --port 8080"
    opening = opened(real_embedder, real_cross_encoder)
    with collecting() as collector:
        more = {"models": real_offers(), "tracing__endpoint": collector.url}
        with serving_api(opening, **more) as api:
            for line in typed:
                said = line.replace(COLLECTOR, collector.url).replace(SERVER_URL, api.url)
                setting, *words = shlex.split(said.replace("=20s", "=4s"))
                name, _, value = setting.partition("=")
                if "bench" in words:
                    words += ["--target", f"{api.url}/v1"]
                done = subprocess.run(
                    [sys.executable, "-m", "tailrace.cli.main", *words[1:]],
                    capture_output=True,
                    text=True,
                    timeout=120,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "src"), name: value},
                    cwd=tmp_path,
                    check=False,
                )
                # A machine that runs tests is busy: a run may be told to be invalid.
                assert done.returncode in ({0, 2} if "bench" in words else {0}), done.stderr
        sent = {span.id: span for span in collector.wholes(CLIENT)}
        served = [s for s in collector.wholes(SERVER) if s.name == "POST /v1/embeddings"]
        assert len(sent) == len(served) >= 6 + 5
        for span in served:
            assert sent[span.parent].trace == span.trace
            assert {"parse", "wait", "infer"} <= {part.name for part in collector.parts(span)}
    for row in (tmp_path / "runs" / "traced").glob("rows*"):
        assert '"trace"' in row.read_text(encoding="utf-8")


def test_both_languages_say_the_same():
    english, korean = PAGES
    assert lines(english) == lines(korean)
    assert code_blocks(english, "toml") == code_blocks(korean, "toml")
    for sign in ("## ", "| "):
        ours, theirs = (
            sum(line.startswith(sign) for line in page.read_text(encoding="utf-8").splitlines())
            for page in PAGES
        )
        assert ours == theirs


def test_every_attribute_and_variable_that_is_named_is_real():
    from tailrace.wire import tracing

    known = {value for value in vars(tracing).values() if isinstance(value, str)}
    for page in PAGES:
        words = page.read_text(encoding="utf-8").split("`")[1::2]
        named = {w for w in words if w.startswith(("gen_ai.", "tailrace.", "http.", "url."))}
        assert named
        assert named <= known
