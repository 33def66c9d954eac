"""More work than a model can do: refusals in every dialect's own words, with a time to come back."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from matrix import need

from apis import RUN_S, Api, fresh, opened, serving_api, slow_embedder
from tailrace.serve.opening import Opening

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def slow(tiny_embedder_folder, tiny_cross_encoder, threads) -> Iterator[Api]:
    """One model, one slot, one run at a time, three seats."""
    embedder = slow_embedder(tiny_embedder_folder, threads)
    opening = Opening(lambda *_, **__: embedder, lambda *_, **__: tiny_cross_encoder)
    door = {"batch": True, "policies": [{"kind": "waiting-room", "seats": 3}]}
    offer = {"name": "slow", "kind": "embedding", "door": door, "runs": {"items_max": 1}}
    with serving_api(opening, models=[offer], threads=1, cache__entries_max=0) as api:
        yield api


WORDS = [a + b for a in "abcdefgh" for b in "abcdefgh"]


@pytest.mark.parametrize(
    ("path", "field", "kind"),
    [
        ("/v1/embeddings", "input", lambda body: body["error"]["type"] == "rate_limit_error"),
        ("/embeddings", "input", lambda body: body["error"]["code"] == "lane-full"),
        ("/embed", "inputs", lambda body: body["error_type"] == "Overloaded"),
    ],
)
def test_one_too_many_is_429_with_a_time_to_come_back(slow: Api, path, field, kind):
    with ThreadPoolExecutor(16) as crowd:
        answers = list(crowd.map(lambda word: slow.post(path, {field: word}), WORDS[:16]))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 429}
    for answer in answers:
        if answer.status_code == 429:
            assert kind(answer.json()), answer.text
            assert answer.headers["x-should-retry"] == "true"
            assert int(answer.headers["retry-after"]) >= 1
            assert int(answer.headers["retry-after-ms"]) >= 1


@pytest.mark.model
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/embeddings", {"input": "never in time"}, 503),
        ("/embed", {"inputs": "never in time, as TEI"}, 429),
        ("/v2/rerank", {"query": "never", "documents": ["in time"]}, 503),
    ],
)
def test_a_deadline_that_cannot_be_met_is_refused_at_once_and_not_to_be_tried_again(
    api: Api, path, body, status
):
    answer = api.post(path, body, headers={"X-Deadline-Ms": "0.5"})
    assert answer.status_code == status, answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert api.post(path, body, headers={"X-Deadline-Ms": "30000"}).status_code == 200
    assert api.post(path, body, headers={"X-Deadline-Ms": "soon"}).status_code in {400, 422}


def test_openai_comes_back_when_it_is_told_and_is_served(slow: Api, monkeypatch):
    openai = need("openai")
    monkeypatch.setenv("NO_PROXY", "*")
    with (
        openai.OpenAI(base_url=f"{slow.url}/v1", api_key="any", max_retries=4) as client,
        ThreadPoolExecutor(12) as crowd,
    ):

        def ask(word: str) -> int:
            return len(client.embeddings.create(model="slow", input=word).data[0].embedding)

        assert list(crowd.map(ask, WORDS[:12])) == [64] * 12


def test_a_request_of_many_texts_is_let_in_whole_or_not_at_all(slow: Api):
    runs = slow.server.lanes[0].service
    assert slow.post("/embed", {"inputs": WORDS[:3]}).status_code == 200
    refused = slow.post("/embed", {"inputs": WORDS[:30]})
    assert refused.status_code == 429
    assert "x-queue-time" not in refused.headers
    assert slow.server.lanes[0].waiting == 0
    assert runs is slow.server.lanes[0].service


def test_the_queue_time_of_tei_is_the_time_in_line(slow: Api):
    with ThreadPoolExecutor(3) as crowd:
        answers = list(crowd.map(lambda word: slow.post("/embed", {"inputs": word}), WORDS[:3]))
    waited = sorted(int(answer.headers["x-queue-time"]) for answer in answers)
    ran = [int(answer.headers["x-inference-time"]) for answer in answers]
    assert waited[0] < waited[1] < waited[2]
    assert all(spent >= RUN_S * 1000 for spent in ran)


def test_those_who_hang_up_leave_their_seats(slow: Api):
    lane = slow.server.lanes[0]

    def hang_up(word: str) -> None:
        import httpx

        with slow.client() as client, pytest.raises(httpx.ReadTimeout):
            client.post("/embed", json={"inputs": [word, word[::-1] + "a"]}, timeout=RUN_S / 5)

    hang_up("ab")
    ends = time.monotonic() + 10
    while lane.waiting + lane.running and time.monotonic() < ends:
        time.sleep(0.005)
    assert slow.post("/embed", {"inputs": "ha"}).status_code == 200
    assert lane.waiting == 0


def test_health_answers_while_the_model_is_busy(slow: Api):
    busy = threading.Thread(target=lambda: slow.post("/embed", {"inputs": ["aa", "bb", "cc"]}))
    busy.start()
    for path in ("/health", "/livez", "/models", "/info"):
        assert slow.get(path).status_code == 200
    busy.join()


def test_without_a_key_each_dialect_says_so_in_its_own_words(
    tmp_path, tiny_embedder_folder, real_embedder, real_cross_encoder
):
    file = tmp_path / "keys"
    file.write_text("team:secret\n")
    opening = opened(real_embedder, real_cross_encoder)
    with serving_api(opening, keys__file=str(file)) as api:
        said = {
            path: api.post(path, body)
            for path, body in {
                "/v1/embeddings": {"input": "a"},
                "/embeddings": {"input": "a"},
                "/embed": {"inputs": "a"},
                "/v2/rerank": {"query": "a", "documents": ["b"]},
                "/v1/rerank": {"query": "a", "documents": ["b"]},
                "/rerank": {"query": "a", "documents": ["b"]},
            }.items()
        }
        assert {answer.status_code for answer in said.values()} == {401}
        assert said["/v1/embeddings"].json()["error"]["type"] == "authentication_error"
        assert said["/embeddings"].json()["detail"] == "Unauthorized"
        assert said["/embed"].json()["error_type"] == "Unauthorized"
        assert said["/v2/rerank"].json()["message"]
        assert said["/v1/rerank"].json()["detail"]
        for value in ("Bearer secret", "secret", "bearer   secret"):
            answer = api.post("/embed", {"inputs": "a"}, headers={"Authorization": value})
            assert answer.status_code == 200
        assert api.get("/info").status_code == 401
        assert api.get("/health").status_code == 200


@pytest.mark.model
def test_an_answer_that_is_known_is_given_to_a_caller_in_any_hurry(api: Api):
    text = " ".join(fresh())
    assert api.post("/v1/embeddings", {"input": text}).status_code == 200
    hurried = {"X-Deadline-Ms": "0.001"}
    assert api.post("/v1/embeddings", {"input": text}, headers=hurried).status_code == 200
    assert api.post("/v1/embeddings", {"input": f"{text} b"}, headers=hurried).status_code == 503


def test_head_and_body_of_an_answer_arrive_together(slow: Api):
    with socket.create_connection(("127.0.0.1", slow.port)) as wire:
        for _ in range(50):
            wire.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            head, _, body = wire.recv(65536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert body == b'{"alive":true}'
