"""What callers see of a model server that is told to stop, and of a model that does not come back."""

import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import orjson
import pytest
from api_process import server_process

from apis import fresh, serving_tiny
from tailrace.wire.problem import MEDIA_TYPE

LONG = 1500
"""Texts of a request that is under way for a while."""


def embed(url: str, texts: list[str]) -> httpx.Response:
    return httpx.post(f"{url}/v1/embeddings", json={"input": texts}, trust_env=False, timeout=60)


def test_told_to_stop_with_work_inside_it_answers_that_and_refuses_who_still_comes(
    tiny_embedder_folder: Path, tmp_path: Path
) -> None:
    with (
        server_process(tiny_embedder_folder, tmp_path, "drain_notice_s = 1.5") as (process, url),
        ThreadPoolExecutor(24) as pool,
        httpx.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        asked = [pool.submit(embed, url, fresh(LONG // 10)) for _ in range(24)]
        while client.get("/metrics").text.count('tailrace_waiting{model="tiny"} 0.0'):
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        while client.get("/readyz").status_code == 200:
            time.sleep(0.005)
        assert client.get("/livez").status_code == 200
        refused = embed(url, fresh())
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "draining"
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.headers["connection"] == "close"
        answers = [each.result() for each in asked]
        assert {answer.status_code for answer in answers} <= {200, 503}
        lost = [
            a for a in answers if a.status_code != 200 and a.json()["error"]["code"] != "draining"
        ]
        assert lost == []
        assert sum(answer.status_code == 200 for answer in answers) > 0
        assert process.wait(30) in {0, -signal.SIGTERM}
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/livez", trust_env=False)


def test_the_listener_stays_open_for_as_long_as_a_load_balancer_needs_to_see_it(
    tiny_embedder_folder: Path, tmp_path: Path
) -> None:
    with server_process(tiny_embedder_folder, tmp_path, "drain_notice_s = 1.0") as (process, url):
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        seen = set()
        while 503 not in seen:
            seen.add(httpx.get(f"{url}/readyz", trust_env=False).status_code)
            time.sleep(0.02)
        assert process.wait(30) in {0, -signal.SIGTERM}
        assert time.monotonic() - began >= 1.0


def test_a_person_who_stops_it_does_not_wait_for_a_load_balancer(
    tiny_embedder_folder: Path, tmp_path: Path
) -> None:
    with server_process(tiny_embedder_folder, tmp_path, "drain_notice_s = 600") as (process, _):
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_while_every_slot_hangs_new_work_is_refused_at_once_and_known_answers_are_given(
    tiny_embedder_folder: Path,
) -> None:
    with (
        serving_tiny(tiny_embedder_folder, ready__stuck_s=0.3) as api,
        ThreadPoolExecutor(2) as pool,
    ):
        (known,) = fresh()
        assert api.embed(known).status_code == 200
        with api.held():
            asked = [pool.submit(api.embed, text) for text in fresh(2)]
            api.until(lambda: api.server.budget.taken == 2)
            api.until(lambda: api.get("/readyz").status_code == 503)
            api.until(api.server.local.hangs)
            refused = api.embed(fresh())
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "model-hangs"
            assert int(refused.headers["retry-after"]) == 10
            tei = api.post("/embed", {"inputs": fresh()})
            assert (tei.status_code, tei.json()["error_type"]) == (503, "Unhealthy")
            assert api.embed(known).status_code == 200
            assert api.get("/livez").status_code == 200
        assert [each.result().status_code for each in asked] == [200, 200]
        api.quiet()
        assert api.embed(fresh()).status_code == 200


def test_one_slot_that_hangs_leaves_the_others_at_work(tiny_embedder_folder: Path) -> None:
    with serving_tiny(tiny_embedder_folder, ready__stuck_s=0.2) as api:
        api.server.budget.take(lambda: None)
        assert not api.server.local.hangs()
        assert api.embed(fresh()).status_code == 200
        api.server.budget.give()


def test_a_caller_of_a_run_that_hangs_is_told_in_time(tiny_embedder_folder: Path) -> None:
    runs = {"runs": {"run_max_s": 0.3}}
    with serving_tiny(tiny_embedder_folder, offer=runs) as api, api.held():
        answer = api.embed(fresh())
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "model-timeout"


@pytest.mark.parametrize(
    "line", [b"NONSENSE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x00\r\n\r\n"]
)
def test_bytes_that_are_no_request_get_a_problem(tiny_embedder_folder: Path, line: bytes) -> None:
    with serving_tiny(tiny_embedder_folder) as api:
        with socket.create_connection(("127.0.0.1", api.port)) as wire:
            wire.sendall(line)
            wire.settimeout(10)
            answer = b"".join(iter(lambda: wire.recv(4096), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert f"content-type: {MEDIA_TYPE}".encode() in head
        assert orjson.loads(body)["code"] == "not-http"


def test_answers_in_a_file_outlive_the_server(tiny_embedder_folder: Path, tmp_path: Path) -> None:
    cache = {"kind": "sqlite", "path": str(tmp_path / "answers.sqlite3")}
    (text,) = fresh()
    with serving_tiny(tiny_embedder_folder, cache=cache) as api:
        first = api.embed(text)
        assert first.headers["x-cache"] == "miss"
    with serving_tiny(tiny_embedder_folder, cache=cache) as api:
        second = api.embed(text)
        assert second.headers["x-cache"] == "hit"
        assert second.json() == first.json()


def test_errors_are_flat_on_openais_path_where_the_setting_says_so(
    tiny_embedder_folder: Path,
) -> None:
    with serving_tiny(tiny_embedder_folder, dialects__openai_errors="flat") as api:
        body = api.post("/v1/embeddings", {"input": []}).json()
        assert set(body) == {"message", "code", "type"}
        assert isinstance(body["code"], int)
    with serving_tiny(tiny_embedder_folder) as api:
        body = api.post("/v1/embeddings", {"input": []}).json()
        assert set(body["error"]) == {"message", "type", "param", "code"}
