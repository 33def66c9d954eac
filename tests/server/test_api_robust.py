"""The model server when things go wrong: callers who leave, bad items, hung models, races, strangers."""

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from apis import Api, fresh, serving_tiny
from boxes import ENVIRON
from tiny import NAN_SIGN, TOO_LONG

SEATS = {
    "door": {"policies": [{"kind": "waiting-room", "seats": 4}]},
    "runs": {"items_max": 1},
}


@pytest.fixture(scope="module")
def api(tiny_embedder_folder: Path) -> Iterator[Api]:
    with serving_tiny(tiny_embedder_folder) as served:
        yield served


def send(api: Api, texts: list[str], **headers: str) -> socket.socket:
    """A request whose answer nobody waits for."""
    body = json.dumps({"input": texts}).encode()
    host, port = api.url.removeprefix("http://").split(":")
    wire = socket.create_connection((host, int(port)))
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    wire.sendall((head + "".join(lines) + "\r\n").encode() + body)
    return wire


def test_callers_who_hang_up_free_the_seats_of_all_their_items(api: Api) -> None:
    left_before = api.metric("tailrace_answered_total", door="tiny", outcome="left")
    with api.held():
        wires = [send(api, fresh(10)) for _ in range(8)]
        api.until(lambda: api.lane.waiting + api.lane.running == 80)
        for wire in wires:
            wire.close()
        api.until(lambda: api.lane.waiting == 0)
    api.quiet()
    left = api.metric("tailrace_answered_total", door="tiny", outcome="left") - left_before
    assert left == 80
    assert api.embed(fresh()).status_code == 200


def test_gauges_return_to_zero_after_500_callers_have_left(api: Api) -> None:
    def leave(number: int) -> None:
        with send(api, fresh(1 + number % 3)):
            time.sleep(0.001 * (number % 7))

    with ThreadPoolExecutor(50) as crowd:
        list(crowd.map(leave, range(500)))
    api.quiet()
    assert api.metric("tailrace_waiting", model="tiny") == 0
    assert api.metric("tailrace_slots_taken") == 0
    assert len(api.server.catalogue.embedder().served.flights) == 0
    assert api.embed(fresh()).status_code == 200


@pytest.mark.parametrize("poison", [TOO_LONG, NAN_SIGN])
def test_a_bad_text_in_a_shared_run_costs_only_its_own_request(api: Api, poison: str) -> None:
    with ThreadPoolExecutor(9) as pool, api.held():
        good = [pool.submit(api.embed, fresh()) for _ in range(8)]
        bad = pool.submit(api.embed, [poison])
        api.until(lambda: api.lane.waiting + api.lane.running == 9)
    assert [each.result().status_code for each in good] == [200] * 8
    assert bad.result().status_code == 500
    error = bad.result().json()["error"]
    assert error["code"] in {"model-failed", "bad-output"}
    assert "NaN" not in bad.result().text


def test_a_vector_that_is_no_number_is_a_typed_error(api: Api) -> None:
    answer = api.embed([NAN_SIGN])
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "bad-output"


def test_one_more_than_there_is_room_for_is_refused_exactly_once_in_every_round(
    tiny_embedder_folder: Path,
) -> None:
    with (
        serving_tiny(tiny_embedder_folder, offer=SEATS) as api,
        ThreadPoolExecutor(7) as pool,
        api.client() as client,
    ):
        room = 2 + 4  # slots and seats
        for _ in range(50):
            barrier = threading.Barrier(room + 1)

            def ask(text: str, barrier: threading.Barrier = barrier) -> int:
                barrier.wait()
                return client.post("/v1/embeddings", json={"input": text}).status_code

            with api.held():
                asked = [pool.submit(ask, text) for text in fresh(room + 1)]
                api.until(lambda asked=asked: sum(each.done() for each in asked) == 1)
                api.until(lambda: api.lane.waiting == 4)
            codes = sorted(each.result() for each in asked)
            assert codes == [200] * room + [429]
            api.quiet()


def test_a_request_of_many_items_gets_all_its_seats_or_none(tiny_embedder_folder: Path) -> None:
    with serving_tiny(tiny_embedder_folder, offer=SEATS) as api, api.held():
        waiting = send(api, fresh(4))
        api.until(lambda: api.lane.waiting + api.lane.running == 4)
        refused = api.embed(fresh(3))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after-ms"]) > 0
        assert refused.headers["x-should-retry"] == "true"
        assert api.lane.waiting + api.lane.running == 4
        waiting.close()


def test_who_waits_for_the_same_text_is_answered_though_the_first_to_ask_left(
    api: Api,
) -> None:
    text = fresh()
    with ThreadPoolExecutor(1) as pool, api.held():
        first = send(api, text)
        api.until(lambda: api.lane.waiting + api.lane.running == 1)
        second = pool.submit(api.embed, text)
        api.until(lambda: api.server.catalogue.embedder().served.flights.joined >= 1)
        first.close()
        time.sleep(0.05)
        assert api.lane.waiting + api.lane.running == 1
    assert second.result().status_code == 200


def test_bulk_work_lets_later_interactive_work_pass(tiny_embedder_folder: Path) -> None:
    with (
        serving_tiny(tiny_embedder_folder, offer={"runs": {"items_max": 1}}) as api,
        ThreadPoolExecutor(2) as pool,
    ):
        with api.held():
            bulk = pool.submit(api.embed, fresh(30))
            api.until(lambda: api.lane.waiting + api.lane.running == 30)
            quick = pool.submit(api.embed, fresh(1))
            api.until(lambda: api.lane.waiting + api.lane.running == 31)
            order = [work.yields for work, boarded in api.lane.line() if not boarded]
            assert order[0] == 0.0
            assert all(yields > 0 for yields in order[1:])
        assert bulk.result().status_code == quick.result().status_code == 200


def test_a_request_has_an_id_its_own_or_a_new_one(api: Api) -> None:
    assert api.embed(fresh(), X_Request_Id="abc-1").headers["x-request-id"] == "abc-1"
    made = {api.embed(fresh()).headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3
    odd = api.get("/livez", headers={"X-Request-Id": 'a"b c'})
    assert odd.headers["x-request-id"] not in {"", 'a"b c'}


def test_the_access_log_tells_the_answer_and_no_text(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("tailrace.access")
    log.addHandler(caplog.handler)
    log.setLevel(logging.INFO)
    try:
        text = fresh()[0]
        api.embed(text, X_Request_Id="told", Authorization="Bearer secret-key")
        api.until(lambda: caplog.records)
    finally:
        log.removeHandler(caplog.handler)
        log.setLevel(logging.CRITICAL)
    line = json.loads(caplog.records[0].getMessage())
    assert (line["id"], line["status"], line["path"]) == ("told", 200, "/v1/embeddings")
    assert line["ms"] > 0
    assert "infer" in line["timing"]
    assert text not in caplog.text
    assert "secret-key" not in caplog.text


def test_pages_of_other_origins_are_let_in_only_where_the_setting_says_so(
    api: Api, tiny_embedder_folder: Path
) -> None:
    origin = {"Origin": "https://page.example"}
    assert "access-control-allow-origin" not in api.get("/livez", headers=origin).headers
    allowed = {"server__cors_origins": ["https://page.example"]}
    with serving_tiny(tiny_embedder_folder, **allowed) as open_api:
        answer = open_api.embed(fresh(), **origin)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        other = open_api.embed(fresh(), Origin="https://other.example")
        assert "access-control-allow-origin" not in other.headers


def test_a_caller_without_a_known_key_is_told_so_in_the_dialects_shape(
    tiny_embedder_folder: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nteam:right-key\nbare-key\n")
    with serving_tiny(tiny_embedder_folder, keys__file=str(keys)) as api:
        for given in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": "right-ke"}):
            refused = api.embed(fresh(), **given)
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "authentication_error"
        assert api.embed(fresh(), Authorization="Bearer right-key").status_code == 200
        assert api.embed(fresh(), X_API_Key="bare-key").status_code == 200
        assert api.get("/livez").status_code == 200


def test_a_model_that_hangs_makes_the_server_unready_and_leaves_it_alive(
    tiny_embedder_folder: Path,
) -> None:
    with serving_tiny(tiny_embedder_folder, ready__stuck_s=0.2) as api:
        assert api.get("/readyz").status_code == 200
        with api.held():
            wire = send(api, fresh())
            api.until(lambda: api.get("/readyz").status_code == 503)
            assert "not come back" in api.get("/readyz").text
            assert api.get("/livez").status_code == 200
            wire.close()
        api.quiet()
        assert api.get("/readyz").status_code == 200


def test_a_server_nobody_has_asked_for_long_tries_its_model_once_and_does_not_wait_for_it(
    tiny_embedder_folder: Path,
) -> None:
    with serving_tiny(tiny_embedder_folder, ready__recent_s=0.1, ready__stuck_s=1.5) as api:
        readiness = api.server.local.readiness[0]
        time.sleep(0.15)
        with api.held():
            for _ in range(5):
                assert api.get("/readyz").status_code == 200
            assert readiness.canaries == 1
            api.until(lambda: api.get("/readyz").status_code == 503)
            assert readiness.canaries == 1
        api.until(lambda: api.get("/readyz").status_code == 200)
        assert api.metric("tailrace_runs_total", result="done") == 0


def test_the_entries_of_the_short_way_are_in_the_openapi_file(api: Api) -> None:
    paths = api.get("/openapi.json").json()["paths"]
    assert "post" in paths["/v1/embeddings"]
    assert api.get("/v1/embeddings").status_code == 405


def test_sigterm_loses_nothing_that_was_taken_in_and_leaves_the_port(
    tiny_embedder_folder: Path,
) -> None:
    offers = [{"name": "tiny", "kind": "embedding", "source": f"dir:{tiny_embedder_folder}"}]
    environ = {**ENVIRON, "TAILRACE__MODELS": json.dumps(offers)}
    command = [sys.executable, "-m", "tailrace.cli.main", "api", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "ready http" in line)
        url = line.split()[1]

        async def crowd() -> list[int]:
            limits = httpx.Limits(max_connections=24)
            async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=60) as client:
                entry = f"{url}/v1/embeddings"
                asks = [client.post(entry, json={"input": fresh(150)}) for _ in range(24)]
                asking = [asyncio.create_task(ask) for ask in asks]
                await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                inside = await client.get(f"{url}/metrics")
                process.send_signal(signal.SIGTERM)
                answers = await asyncio.gather(*asking)
                assert 'tailrace_waiting{model="tiny"} 0.0' not in inside.text, "nothing waited"
                return [answer.status_code for answer in answers]

        assert asyncio.run(crowd()) == [200] * 24
        process.stderr.read()
        assert process.wait(30) in {0, -signal.SIGTERM}
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/livez", trust_env=False)
