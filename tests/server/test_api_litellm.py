"""litellm, which speaks most of the dialects, from an environment of its own pinned by hash."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from matrix import proves

from apis import E5, REVIEWS, Api

HERE = Path(__file__).parent / "litellm"
FIT = (sys.platform, platform.machine(), sys.version_info[:2]) == ("linux", "x86_64", (3, 11))
WANTED = os.environ.get("TAILRACE_CLIENTS")
BEST = 1
EXPECTED = {
    "openai embeddings": [384, 3],
    "infinity embeddings": [384, 3],
    "infinity rerank": [BEST, 2],
    "infinity rerank with documents": [BEST, 2],
    "huggingface rerank": [BEST, 3],  # TEI knows no top_n
    "cohere rerank": [BEST, 2],
    "jina_ai rerank": [BEST, 2],
    "hosted_vllm rerank": [BEST, 2],
}


def environment() -> Path:
    """The Python of an environment that holds what requirements.txt says, made once."""
    content = (HERE / "requirements.txt").read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = base / "tailrace" / "clients" / f"litellm-{hashlib.sha256(content).hexdigest()[:12]}"
    if not (place / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-q", "--require-hashes"]
        options = ["--disable-pip-version-check", "--only-binary", ":all:"]
        subprocess.run([*pip, *options, "-r", str(HERE / "requirements.txt")], check=True)
        (place / "whole").touch()
    return place / "bin" / "python"


@pytest.mark.model
@pytest.mark.timeout(900)
@pytest.mark.skipif(not FIT, reason="litellm is pinned by hash for Linux, x86-64, Python 3.11")
@pytest.mark.skipif(
    not WANTED, reason="`make client-matrix` fetches litellm (0.4 GB) and runs this"
)
@proves(
    "litellm",
    "api_base=URL or URL/v1",
    "`/v1/embeddings`, `/embeddings`, `/rerank` with `documents` or `texts`, `/v1/rerank`, `/v2/rerank`",
    "as `openai/`, `infinity/`, `huggingface/`, `cohere/`, `jina_ai/` (URL/v1/rerank), `hosted_vllm/`",
)
def test_litellm_speaks_its_dialects(api: Api):
    command = [str(environment()), str(HERE / "calls.py"), api.url, E5, REVIEWS]
    environ = {**os.environ, "NO_PROXY": "*"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, capture_output=True, text=True, env=environ, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {line["call"]: line.get("made", line.get("fault")) for line in lines} == EXPECTED


def test_litellm_is_in_no_list_of_ours():
    root = HERE.parents[2]
    for name in ("pyproject.toml", "constraints.txt", "constraints-clients.txt"):
        assert "litellm" not in (root / name).read_text(encoding="utf-8")
