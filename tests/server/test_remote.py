"""Models elsewhere, end to end: our server in front of a scripted upstream, a client in front of ours."""

import base64
import logging
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx
import orjson
import pytest

from boxes import parts_of
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.models.errors import ModelUnavailable
from upstream import ScriptedUpstream, Step, events, serving_api, upstream, vector

KEY = "sk-secret-0123456789"
QUICK = {"connect_s": 5.0, "first_byte_s": 0.4, "between_bytes_s": 0.4, "total_s": 30.0}


class House:
    """Our server, the upstream behind it, and a client."""

    def __init__(self, url: str, server: ApiServer, far: ScriptedUpstream) -> None:
        self.server, self.far = server, far
        self.client = httpx.Client(base_url=url, timeout=60.0, trust_env=False, verify=False)

    def embed(self, *texts: str, **more: Any) -> httpx.Response:
        return self.client.post(
            "/v1/embeddings", json={"input": list(texts), "model": "far", **more}
        )

    def chat(self, text: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        return self.client.post("/v1/chat/completions", json=talk(text, **more), headers=headers)

    def hang_up(self, text: str) -> None:
        """Ask for a chat, and leave once the upstream has been asked."""
        asked, place, body = len(self.far.asked), self.client.base_url, orjson.dumps(talk(text))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {place.host}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        with socket.create_connection((place.host, place.port or 80)) as wire:
            wire.sendall(head.encode() + body)
            self.far.until(lambda: len(self.far.asked) > asked)

    def lane(self, name: str) -> Any:
        return self.server.catalogue.names[name].served.lane


def talk(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "talk", "messages": [{"role": "user", "content": text}], **more}


def offers(url: str, **chat: Any) -> list[dict[str, Any]]:
    common = {"url": url, "key_env": "FAR_KEY", "timeouts": QUICK, "slots": 4}
    return [
        {"name": "far", "kind": "remote-embedding", "model": "far-embed", **common},
        {"name": "talk", "kind": "remote-chat", "model": "far-chat", **common, **chat},
    ]


@pytest.fixture
def far() -> Iterator[ScriptedUpstream]:
    with upstream() as scripted:
        yield scripted


@pytest.fixture
def house(far: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("FAR_KEY", KEY)
    with serving_api(ApiSettings.model_validate({"models": offers(far.url)})) as (url, server):
        made = House(url, server, far)
        with made.client:
            yield made


def error_of(response: httpx.Response, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    parts_of(response.headers)
    return str(error["message"])


# -- answers ----------------------------------------------------------------------------------


def test_embeddings_come_in_order_under_our_name_and_are_remembered(house):
    answer = house.embed("a", "bb", "ccc")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["model"] == "far"
    for entry, text in zip(body["data"], ["a", "bb", "ccc"], strict=True):
        length = sum(x * x for x in vector(text)) ** 0.5
        assert entry["embedding"] == pytest.approx([x / length for x in vector(text)], abs=1e-6)
    again = house.embed("bb")
    assert again.status_code == 200, again.text
    assert again.headers["x-cache"] == "hit"
    assert house.far.asked[0].path == "/v1/embeddings"
    assert house.far.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert {asked.body["model"] for asked in house.far.asked} == {"far-embed"}
    assert sorted(text for asked in house.far.asked for text in asked.body["input"]) == [
        "a",
        "bb",
        "ccc",
    ]


def test_the_other_dialects_embed_elsewhere_too_and_say_what_cannot_be_known_there(house):
    made = house.client.post("/embed", json={"inputs": ["a"], "model": "far"})
    assert made.status_code == 200, made.text
    assert made.json()[0] == pytest.approx(house.embed("a").json()["data"][0]["embedding"])
    ids = house.client.post("/embed", json={"inputs": [1, 2], "model": "far"})
    assert ids.status_code == 422
    assert "runs elsewhere" in ids.json()["error"]
    for path, body in (
        ("/tokenize", {"inputs": "a"}),
        ("/embed_all", {"inputs": "a"}),
        ("/embed", {"inputs": "a", "truncation_direction": "left"}),
        ("/tei/talk/tokenize", {"inputs": "a"}),
        ("/tei/talk/embed", {"inputs": "a"}),
    ):
        refused = house.client.post(path, json=body)
        assert refused.status_code == 422, (path, refused.text)
    about = house.client.get("/info").json()
    assert (about["model_id"], about["max_input_length"]) == ("far", 8192)
    listed = {
        m["id"]: (m["capabilities"], m["backend"])
        for m in house.client.get("/models").json()["data"]
    }
    assert listed == {"far": (["embed"], "remote"), "talk": (["chat"], "remote")}


def test_a_pause_upstream_is_overload_in_teis_words(house):
    house.far.always = Step(429, headers={"Retry-After": "5"})
    refused = house.client.post("/embed", json={"inputs": "a", "model": "far"})
    assert (refused.status_code, refused.json()["error_type"]) == (429, "Overloaded")
    assert int(refused.headers["retry-after"]) >= 1


def test_a_chat_is_passed_on_as_it_is_but_for_the_name(house):
    answer = house.chat("abc", temperature=0.5, tools=[], unheard_of={"x": 1})
    assert answer.json()["choices"][0]["message"]["content"] == "cba"
    (asked,) = house.far.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == talk(
        "abc", temperature=0.5, tools=[], unheard_of={"x": 1}, model="far-chat"
    )


def test_the_stages_upstream_are_parts_that_add_up(house):
    house.far.seconds = 0.1
    first, second = (parts_of(house.chat("abc").headers) for _ in range(2))
    for stage in ("connect", "send", "first-byte", "transfer"):
        assert stage in first
    assert first["first-byte"] > 0.8 * sum(first.values())
    assert "connect" not in second, "a connection that is there is used again"
    assert house.far.connections == 1


def test_a_name_is_looked_up_in_a_stage_of_its_own(far, monkeypatch):
    url = far.url.replace("127.0.0.1", "localhost")
    far_offer = {**offers(url)[0], "key_env": None}
    settings = ApiSettings.model_validate({"models": [far_offer]})
    with serving_api(settings) as (ours, _):
        answer = httpx.post(f"{ours}/v1/embeddings", json={"input": "a"}, trust_env=False)
    assert list(parts_of(answer.headers))[-8:-1] == [
        *("dns", "connect", "send", "first-byte", "transfer", "post", "handover"),
    ]  # fmt: skip
    assert "authorization" not in far.asked[0].headers


def test_a_stream_comes_piece_by_piece_and_says_its_parts_at_the_end(house):
    house.far.seconds = 0.3
    with house.client.stream("POST", "/v1/chat/completions", json=talk("x", stream=True)) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        head = parts_of(answer.headers)
        lines = list(answer.iter_lines())
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    words = [orjson.loads(line)["choices"][0]["delta"]["content"] for line in data[:-1]]
    assert (words, data[-1]) == (["one", "two", "three"], "[DONE]")
    (timing,) = [line for line in lines if line.startswith(": Server-Timing: ")]
    whole = parts_of({"server-timing": timing.removeprefix(": Server-Timing: ")})
    assert "transfer" not in head
    assert whole["transfer"] > head["first-byte"]


def test_several_texts_of_several_callers_share_a_request_upstream(house):
    house.lane("far").slots = 1
    house.far.seconds = 0.2
    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(house.embed, [f"text {i}" for i in range(9)]))
    assert {answer.status_code for answer in answers} == {200}
    assert house.far.most == 1
    assert len(house.far.asked) < 9


# -- overload ---------------------------------------------------------------------------------


def test_no_more_go_upstream_at_once_than_there_are_slots(house):
    house.far.seconds = 0.1
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(house.chat, "abcdefghijklmnop"))
    assert {answer.status_code for answer in answers} == {200}
    assert house.far.most == 4


def test_a_refusal_is_passed_on_and_the_lane_pauses(house):
    house.far.steps.append(Step(429, {"Retry-After": "30"}, b'{"error": "slow down"}'))
    refused = house.chat("first")
    assert "slow down" in error_of(refused, 429, "upstream-busy")
    assert refused.headers["retry-after"] == "30"
    assert refused.headers["x-should-retry"] == "true"
    later = house.chat("second")
    error_of(later, 429, "upstream-paused")
    assert 1 <= int(later.headers["retry-after"]) <= 30
    assert len(house.far.asked) == 1, "nothing is sent during the pause"
    assert house.embed("other lane").status_code == 200


def test_a_short_pause_is_waited_out(house):
    house.far.steps.append(Step(503, {"retry-after-ms": "300", "Retry-After": "1"}))
    error_of(house.chat("first"), 429, "upstream-busy")
    parts = parts_of(house.chat("second").headers)
    assert parts["wait"] > 0.5 * sum(parts.values())


def test_a_deadline_that_cannot_be_met_is_refused_at_the_door(house):
    house.far.seconds = 0.3
    assert house.chat("learn").status_code == 200
    refused = house.chat("hurry", headers={"X-Deadline-Ms": "50"})
    error_of(refused, 503, "deadline-infeasible")
    assert len(house.far.asked) == 1


def test_a_full_line_is_said_so_at_once_with_a_time_to_come_back(far, monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    door = {"policies": [{"kind": "waiting-room", "seats": 1}]}
    made = offers(far.url, slots=1, door=door)
    with serving_api(ApiSettings.model_validate({"models": made})) as (url, server):
        house = House(url, server, far)
        far.seconds = 0.3
        with house.client, ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(house.chat, "abcdef"))
    by_status = sorted(answer.status_code for answer in answers)
    assert by_status == [200, 200, 429, 429, 429, 429]
    for answer in answers:
        if answer.status_code == 429:
            error_of(answer, 429, "lane-full")
            assert int(answer.headers["retry-after"]) >= 1


# -- what goes wrong upstream -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        (Step(500, body=b"boom"), 502, "upstream-failed"),
        (Step(401, body=f"bad key {KEY}".encode()), 502, "upstream-failed"),
        (Step(400, body=b"context too long"), 400, "upstream-refused"),
        (Step(reset=True), 502, "upstream-failed"),
        (Step(body=b"{ this is no JSON"), 502, "upstream-failed"),
        (Step(body=b"[]"), 502, "upstream-failed"),
        (Step(body=b"{}"), 502, "upstream-failed"),
    ],
    ids=["500", "401", "400", "reset", "garbage", "list", "empty"],
)
def test_each_failure_has_its_code_and_the_next_request_is_fine(house, step, status, code):
    house.far.steps.extend([step, step])
    error_of(house.chat("x"), status, code)
    error_of(house.embed("x"), status, code)
    assert house.chat("x").status_code == 200
    assert house.embed("x").status_code == 200
    assert house.client.get("/readyz").status_code == 200


def test_an_upstream_that_fails_is_not_asked_again_for_each_text(house):
    house.far.always = Step(500)
    error_of(house.embed("a", "b", "c", "d"), 502, "upstream-failed")
    assert len(house.far.asked) == 1


def test_a_text_that_the_upstream_cannot_use_costs_only_itself(house):
    """The batch is halved until the bad one is alone."""

    def decide(asked: Any) -> Step | None:
        return Step(400, body=b"bad text") if "poison" in asked.body["input"] else None

    house.far.decide = decide
    with ThreadPoolExecutor(8) as pool:
        texts = ["good one", "good two", "poison", "good three", "good four"]
        answers = list(pool.map(house.embed, texts))
    assert [answer.status_code for answer in answers] == [200, 200, 400, 200, 200]


def test_a_vector_that_is_no_number_is_an_error_of_its_text_alone(house):
    def decide(asked: Any) -> Step | None:
        body = orjson.loads(house.far.usual(asked))
        for entry in body["data"]:
            if asked.body["input"][entry["index"]] == "poison":
                entry["embedding"] = [None] * 4
        return Step(body=orjson.dumps(body))

    house.far.decide = decide
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(house.embed, ["good one", "poison", "good two"]))
    assert [answer.status_code for answer in answers] == [200, 500, 200]
    error_of(answers[1], 500, "bad-output")


@pytest.mark.parametrize(
    ("step", "stage", "bound"),
    [
        (Step(before_head_s=60), "first-byte", "first_byte_s"),
        (Step(before_body_s=60), "first-byte", "first_byte_s"),
        (Step(pieces=[b'{"choices"', b": []}"], between_s=60), "transfer", "between_bytes_s"),
    ],
    ids=["no head", "no body", "stalls"],
)
def test_a_stage_that_takes_too_long_is_named(house, step, stage, bound):
    house.far.steps.append(step)
    answer = house.chat("x")
    message = error_of(answer, 504, "upstream-timeout")
    assert f"stage {stage}:" in message
    assert bound in message
    parts = parts_of(answer.headers)
    assert max(parts, key=lambda part: parts[part]) == stage
    house.far.until(lambda: house.far.hung_up == 1)
    assert house.chat("x").status_code == 200


def test_slow_but_steady_is_only_bounded_by_the_total(far, monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    timeouts = {**QUICK, "total_s": 1.2}
    made = offers(far.url, timeouts=timeouts)
    with serving_api(ApiSettings.model_validate({"models": made})) as (url, server):
        house = House(url, server, far)
        with house.client:
            steady = [b'{"choices"', b": ", b"[", b"]", b"}"]
            far.steps.append(Step(pieces=steady, between_s=0.15))
            assert house.chat("x").status_code == 200
            far.steps.append(Step(pieces=[b" "] * 100, between_s=0.15))
            assert "total_s" in error_of(house.chat("x"), 504, "upstream-timeout")


def test_nobody_there(monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    made = offers("http://127.0.0.1:9/v1")
    with serving_api(ApiSettings.model_validate({"models": made})) as (url, _):
        answer = httpx.post(f"{url}/v1/chat/completions", json=talk("x"), trust_env=False)
    error_of(answer, 502, "upstream-failed")
    assert "connect" in parts_of(answer.headers)


# -- streams ----------------------------------------------------------------------------------


def test_a_stream_holds_its_slot_and_a_hang_up_gives_it_back(house):
    house.lane("talk").slots = 1
    house.far.steps.append(Step(pieces=events(*["word"] * 400), between_s=0.05))
    with house.client.stream("POST", "/v1/chat/completions", json=talk("x", stream=True)) as answer:
        pieces = answer.iter_bytes()
        next(pieces)
        assert house.lane("talk").running == 1
    house.far.until(lambda: house.far.hung_up == 1)
    house.far.until(lambda: house.lane("talk").running == 0)
    assert house.chat("next").status_code == 200


def test_a_hang_up_before_the_first_piece_gives_the_run_up_too(house):
    house.far.steps.append(Step(before_head_s=60))
    house.hang_up("x")
    house.far.until(lambda: house.far.hung_up == 1)
    house.far.until(lambda: house.lane("talk").running == 0)


def test_a_caller_who_does_not_read_holds_the_upstream_back(house):
    """Backpressure: what is sent upstream is bounded by what fits between, not by the stream."""
    piece = b"data: " + b"x" * 65_000 + b"\n\n"
    whole = 600 * len(piece)
    house.far.steps.append(Step(pieces=[piece] * 600))
    with house.client.stream("POST", "/v1/chat/completions", json=talk("x", stream=True)) as answer:
        pieces = answer.iter_bytes()
        next(pieces)
        sent = -1
        while sent != house.far.sent:
            sent = house.far.sent
            threading.Event().wait(0.3)
        assert sent < 0.7 * whole
        threading.Event().wait(0.5)  # longer than between_bytes_s: our caller's time does not count
        rest = sum(len(more) for more in pieces)
    assert rest > whole - sent


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "stall"])
def test_a_stream_that_breaks_off_says_so_and_has_no_end_mark(house, reset):
    more = {"reset": True} if reset else {"between_s": 60}
    house.far.steps.append(Step(pieces=events("one")[:1], **more))
    answer = house.chat("x", stream=True)
    assert answer.status_code == 200
    last = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
    code = orjson.loads(last.removeprefix("data: "))["error"]["code"]
    assert code == ("upstream-failed" if reset else "upstream-timeout")
    assert "[DONE]" not in answer.text


def test_an_error_before_the_first_piece_of_a_stream_is_an_answer_like_any_other(house):
    house.far.steps.append(Step(500))
    error_of(house.chat("x", stream=True), 502, "upstream-failed")
    house.far.steps.append(Step(pieces=[]))
    error_of(house.chat("x", stream=True), 502, "upstream-failed")
    house.far.steps.append(Step())
    assert "stream" in error_of(house.chat("x", stream=True), 502, "upstream-failed")


# -- input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"model": "talk"},
        {"model": "talk", "messages": []},
        {"model": "talk", "messages": ["x"]},
        {"model": "talk", "messages": [{"content": "x"}]},
        {"model": "talk", "messages": [{"role": "user", "content": 5}]},
        {"model": "talk", "messages": [{"role": "user", "content": "x"}], "stream": "yes"},
        {"model": "far", "messages": [{"role": "user", "content": "x"}]},
    ],
    ids=str,
)
def test_what_no_upstream_could_use_is_refused_here(house, body):
    assert house.client.post("/v1/chat/completions", json=body).status_code == 400
    assert house.far.asked == []


def test_a_lone_surrogate_is_refused_here(house):
    raw = b'{"model": "talk", "messages": [{"role": "user", "content": "\\ud800"}]}'
    assert house.client.post("/v1/chat/completions", content=raw).status_code == 400
    inside = b'{"model": "talk", "messages": [{"role": "user", "content": [{"text": "\\ud800"}]}]}'
    assert house.client.post("/v1/chat/completions", content=inside).status_code == 400
    assert house.far.asked == []


# -- the key ----------------------------------------------------------------------------------


def test_the_key_is_in_no_log_no_answer_and_no_settings(far, monkeypatch, caplog):
    monkeypatch.setenv("FAR_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    settings = ApiSettings.model_validate({"models": offers(far.url)})
    assert KEY not in settings.model_dump_json()
    with serving_api(settings) as (url, server):
        house = House(url, server, far)
        with house.client:
            said = b'{"error": "what is ' + KEY.encode() + b'?"}'
            far.steps.extend([Step(status, body=said) for status in (500, 429, 400, 401, 403)])
            answers = [house.chat(f"x{i}").text for i in range(5)]
            answers += [house.chat("y").text, house.client.get("/metrics").text]
        assert KEY not in repr(vars(server.upstreams[0]))
    assert far.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert all(KEY not in answer for answer in answers)
    assert KEY not in caplog.text
    assert all(KEY not in str(record.__dict__) for record in caplog.records)


def test_tls_is_a_stage_of_its_own_and_a_stranger_is_not_trusted(tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    monkeypatch.setenv("FAR_KEY", KEY)
    with upstream(tls) as far:
        for trusted in (True, False):
            if trusted:
                monkeypatch.setenv("SSL_CERT_FILE", str(cert))
            else:
                monkeypatch.delenv("SSL_CERT_FILE")
            settings = ApiSettings.model_validate({"models": offers(far.url)})
            with serving_api(settings) as (url, server):
                house = House(url, server, far)
                with house.client:
                    answer = house.chat("abc")
            assert answer.status_code == (200 if trusted else 502), answer.text
            assert "tls" in parts_of(answer.headers)
    assert len(far.asked) == 1, "the key is not shown to a stranger"


def test_many_who_hang_up_leave_no_connection_behind(house):
    house.far.always = Step(before_head_s=60)
    for _ in range(12):
        house.hang_up("x")
    house.far.until(lambda: house.far.hung_up == 12)
    house.far.until(lambda: house.lane("talk").running == 0)
    house.far.always = None
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(house.chat, "abcdefgh"))
    assert {answer.status_code for answer in answers} == {200}
    assert house.far.inside == 0


# -- the real client --------------------------------------------------------------------------


def test_the_openai_client_sees_nothing_but_openai(house):
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    base = f"{house.client.base_url}/v1".replace("//v1", "/v1")
    plain = httpx.Client(trust_env=False)
    with openai.OpenAI(base_url=base, api_key="x", max_retries=0, http_client=plain) as client:
        made = client.embeddings.create(model="far", input=["a", "bb"])
        assert len(made.data[1].embedding) == 4
        said: Any = [{"role": "user", "content": "abc"}]
        whole = client.chat.completions.create(model="talk", messages=said)
        assert whole.choices[0].message.content == "cba"
        chunks = client.chat.completions.create(model="talk", messages=said, stream=True)
        words = [chunk.choices[0].delta.content for chunk in chunks]
        assert words == ["one", "two", "three"]
        house.far.steps.append(Step(429, {"Retry-After": "30"}))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="talk", messages=said)
        house.lane("talk")._paused_until = 0.0
        house.far.steps.append(Step(pieces=events("one")[:1], reset=True))
        broken = client.chat.completions.create(model="talk", messages=said, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            list(broken)


def test_a_connection_that_the_upstream_closed_while_idle_costs_nobody_an_error(house):
    assert house.embed("first").status_code == 200
    house.far.steps.append(Step(reset=True))
    answer = house.embed("second")
    assert answer.status_code == 200
    assert [asked.body["input"] for asked in house.far.asked] == [["first"], ["second"], ["second"]]
    assert house.far.connections == 2
    parts_of(answer.headers)


def test_it_is_tried_once_more_and_not_again(house):
    assert house.embed("first").status_code == 200
    house.far.always = Step(reset=True)
    answer = house.embed("second")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream-failed"
    assert len(house.far.asked) == 3


def test_a_new_connection_that_breaks_is_not_tried_again(house):
    house.far.steps.append(Step(reset=True))
    assert house.embed("first").status_code == 502
    assert len(house.far.asked) == 1


def test_a_stream_that_broke_off_after_its_first_byte_is_not_asked_for_again(house):
    assert house.chat("one").status_code == 200
    house.far.steps.append(Step(pieces=events("half"), reset=True))
    broken = house.chat("two", stream=True)
    assert "error" in broken.text
    assert len(house.far.asked) == 2


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on, and writes down whose they were."""

    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_POST(self) -> None:
        self.seen.append((self.path, self.headers.get("Proxy-Authorization")))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {"Content-Type": "application/json"}
        answer = httpx.post(self.path, content=body, headers=headers, trust_env=False)
        self.send_response(answer.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[str]:
    Proxy.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("by_proxy", [True, False])
def test_a_proxy_of_the_environment_is_used_unless_the_environment_excepts_the_upstream(
    far, proxy, monkeypatch, by_proxy
):
    monkeypatch.setenv("FAR_KEY", KEY)
    monkeypatch.setenv("HTTP_PROXY", f"http://me:geheim@{proxy}")
    monkeypatch.setenv("http_proxy", f"http://me:geheim@{proxy}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "" if by_proxy else "127.0.0.1,localhost")
    with serving_api(ApiSettings.model_validate({"models": offers(far.url)})) as (url, server):
        house = House(url, server, far)
        assert house.embed("a").status_code == 200
        house.client.close()
    basic = "Basic " + base64.b64encode(b"me:geheim").decode()
    assert Proxy.seen == ([(f"{far.url}/embeddings", basic)] if by_proxy else [])


def test_a_proxy_that_is_none_is_refused_at_start_without_its_password(far, monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    monkeypatch.setenv("http_proxy", "ftp://me:geheim@proxy.example")
    monkeypatch.setenv("no_proxy", "")
    with (
        pytest.raises(ModelUnavailable) as refused,
        serving_api(ApiSettings.model_validate({"models": offers(far.url)})),
    ):
        pass
    assert "proxy" in str(refused.value)
    assert "geheim" not in str(refused.value)
