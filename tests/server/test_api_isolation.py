"""A model in processes of its own: what a crash costs, what a hang costs, and who is left at the end."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_process import server_process
from test_process import children_of, gone

from apis import Api, fresh, serving_api, tiny_offer
from tailrace.core.errors import ModelDied
from tailrace.core.events import Event, RunStarted
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import ModelRestarting, ModelUnavailable
from tailrace.models.folder import read_folder
from tailrace.models.open import open_embedder
from tailrace.models.port import ModelInfo
from tailrace.models.runtimes import Running
from tailrace.models.session_processes import SessionProcesses
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import TextTokens, Tokens, load_tokenizer
from tailrace.serve.opening import Opening

HERE = Path(__file__).parent
RUN_S = 0.3
RUN_MAX_S = 2.0


def odd_processes(folder: Path, count: int, run_s: float = RUN_S) -> SessionProcesses:
    command = [sys.executable, str(HERE / "odd_session_child.py"), "--run-s", str(run_s)]
    command += ["--path", str(folder / "model.onnx")]
    return SessionProcesses("odd", command, count, run_max_s=RUN_MAX_S)


@contextlib.contextmanager
def serving_odd(folder: Path, run_s: float = RUN_S, **offer: Any) -> Iterator[Api]:
    """A model server over processes that take their time, crash on some letters and hang on others."""

    def embedder(source: str, *, threads: InferenceThreads, **_: Any) -> OnnxEmbedder:
        info = ModelInfo("odd", source, "embedding", "odd", 0, "none", 90, True)
        tokens = TextTokens(load_tokenizer(read_folder(folder).tokenizer), info.max_tokens)
        session = odd_processes(folder, threads.count, run_s)
        return OnnxEmbedder(info, session, tokens, threads, prompts={})

    models = [tiny_offer(folder, **offer)]
    with serving_api(Opening(embedder=embedder), models=models, threads=2) as api:
        yield api


def session_of(api: Api) -> SessionProcesses:
    session = api.server.local.models["tiny"].session
    assert isinstance(session, SessionProcesses)
    return session


def test_a_killed_process_costs_the_request_on_it_and_is_started_again(
    tiny_embedder_folder: Path,
) -> None:
    one_by_one = {"runs": {"items_max": 1}}
    with serving_odd(tiny_embedder_folder, **one_by_one) as api, ThreadPoolExecutor(6) as pool:
        victim = session_of(api).pids[0]
        asked = [pool.submit(api.embed, text) for text in fresh(6)]
        api.until(lambda: api.server.budget.taken == 2)
        time.sleep(RUN_S / 3)
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        api.until(lambda: any(each.done() for each in asked))
        assert time.monotonic() - killed < 1.0
        answers = [each.result() for each in asked]
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200] * 5 + [502]
        (failed,) = (answer for answer in answers if answer.status_code == 502)
        assert failed.json()["error"]["code"] == "model-died"
        api.until(lambda: len(session_of(api).pids) == 2)
        assert victim not in session_of(api).pids
        scraped = api.get("/metrics").text
        assert 'tailrace_model_processes_ended{model="tiny"} 1.0' in scraped
        assert 'tailrace_model_processes{model="tiny"} 2.0' in scraped
        assert api.embed(fresh()).status_code == 200


def test_a_process_killed_under_a_shared_run_costs_nobody_an_answer(
    tiny_embedder_folder: Path,
) -> None:
    with serving_odd(tiny_embedder_folder) as api, ThreadPoolExecutor(8) as pool:
        killed: list[int] = []

        def kill() -> None:
            killed.extend(session_of(api).pids)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

        def on(event: Event) -> None:
            if isinstance(event, RunStarted) and len(event.doors) > 2 and not killed:
                threading.Timer(RUN_S / 3, kill).start()

        api.server.events.subscribe(on)
        asked = [pool.submit(api.embed, text) for text in fresh(8)]
        assert [each.result().status_code for each in asked] == [200] * 8
        assert len(killed) == 2


def test_a_text_that_crashes_the_runtime_costs_only_its_own_request(
    tiny_embedder_folder: Path,
) -> None:
    with serving_odd(tiny_embedder_folder, run_s=0.0) as api, ThreadPoolExecutor(5) as pool:
        with api.held():
            good = [pool.submit(api.embed, fresh()) for _ in range(4)]
            bad = pool.submit(api.embed, ["z"])
            api.until(lambda: api.lane.waiting + api.lane.running == 5)
        assert [each.result().status_code for each in good] == [200] * 4
        assert bad.result().status_code == 502
        assert bad.result().json()["error"]["code"] == "model-died"


def test_a_run_that_hangs_is_ended_and_its_process_started_again(
    tiny_embedder_folder: Path,
) -> None:
    with serving_odd(tiny_embedder_folder, run_s=0.0) as api:
        answer = api.embed(["x"])
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "model-timeout"
        api.quiet()
        api.until(lambda: len(session_of(api).pids) == 2)
        assert api.embed(fresh()).status_code == 200


def test_a_model_that_no_process_can_open_says_why(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    running = Running(isolation="process")
    with pytest.raises(ModelUnavailable, match="cannot be opened"):
        running.open(tmp_path / "model.onnx", 2)


def test_closing_ends_the_processes_and_answers_who_waits(tiny_embedder_folder: Path) -> None:
    session = odd_processes(tiny_embedder_folder, 1)
    pids = session.pids
    batch = [Tokens([5, 6], [0, 0])]
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(session.run, batch, session.outputs[0]) for _ in range(2)]
        time.sleep(RUN_S / 3)
        session.close()
        ends = {type(each.exception(10)) for each in asked}
    assert ends == {ModelDied, ModelRestarting}
    assert all(gone(pid) for pid in pids)
    assert session.pids == []


def test_both_ways_give_the_same_vectors(
    tiny_embedder: OnnxEmbedder, process_embedder: OnnxEmbedder
) -> None:
    batch = [tiny_embedder.tokens(text) for text in ("a", "하나 둘", "abc def")]
    assert (tiny_embedder.vectors(batch) == process_embedder.vectors(batch)).all()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_of_a_model_outlives_the_server(
    tiny_embedder_folder: Path, tmp_path: Path, how: int
) -> None:
    isolated = 'isolation = "process"'
    with server_process(tiny_embedder_folder, tmp_path, runs=isolated) as (process, url):
        with httpx.Client(base_url=url, trust_env=False) as client:
            answer = client.post("/v1/embeddings", json={"input": "a"})
            assert answer.status_code == 200
        children = children_of(process.pid)
        assert len(children) == 2
        process.send_signal(how)
        process.wait(30)
        assert all(gone(pid, 5.0) for pid in children)


def test_an_open_model_of_processes_is_a_model_like_any_other(tiny_embedder_folder: Path) -> None:
    model = open_embedder(f"dir:{tiny_embedder_folder}", running=Running(isolation="process"))
    assert model.info.batch_invariant
    model.close()
