"""Who answers instead: by rule, said so, and never with vectors of another space."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from boxes import parts_of
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.core.errors import TailraceError
from tailrace.serve.settings import BadConfiguration
from upstream import ScriptedUpstream, Step, serving_api, upstream


@pytest.fixture
def two() -> Iterator[tuple[ScriptedUpstream, ScriptedUpstream]]:
    with upstream() as first, upstream() as second:
        yield first, second


def offer(name: str, kind: str, url: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": f"remote-{kind}", "url": url, "model": "m", "slots": 4, **more}


def settings(*models: dict[str, Any]) -> ApiSettings:
    return ApiSettings.model_validate({"models": models})


def chat(url: str, **more: Any) -> httpx.Response:
    body = {"model": "first", "messages": [{"role": "user", "content": "abc"}], **more}
    with httpx.Client(base_url=url, trust_env=False) as client:
        return client.post("/v1/chat/completions", json=body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_another_model_answers_and_the_answer_says_so(two, stream):
    first, second = two
    made = settings(
        offer("first", "chat", first.url, fallback="second"), offer("second", "chat", second.url)
    )
    with serving_api(made) as (url, _):
        assert "x-fallback" not in chat(url, stream=stream).headers
        first.always = Step(500)
        answer = chat(url, stream=stream)
        assert answer.status_code == 200
        assert answer.headers["x-fallback"] == "second"
        parts_of(answer.headers)
    assert len(second.asked) == 1


def test_only_after_the_errors_that_were_named(two):
    first, second = two
    rule = {"fallback": "second", "fallback_on": ["upstream-timeout"]}
    made = settings(offer("first", "chat", first.url, **rule), offer("second", "chat", second.url))
    first.always = Step(500)
    with serving_api(made) as (url, _):
        assert chat(url).status_code == 502
    assert second.asked == []


def test_two_that_stand_in_for_each_other_do_not_go_round_in_circles(two):
    first, second = two
    made = settings(
        offer("first", "chat", first.url, fallback="second"),
        offer("second", "chat", second.url, fallback="first"),
    )
    first.always = second.always = Step(500)
    with serving_api(made) as (url, _):
        assert chat(url).status_code == 502
    assert (len(first.asked), len(second.asked)) == (1, 1)


def test_during_a_pause_the_other_answers(two):
    first, second = two
    made = settings(
        offer("first", "chat", first.url, fallback="second"), offer("second", "chat", second.url)
    )
    first.steps.append(Step(429, {"Retry-After": "60"}))
    with serving_api(made) as (url, _):
        assert [chat(url).headers.get("x-fallback") for _ in range(3)] == ["second"] * 3
    assert len(first.asked) == 1


def test_embeddings_of_one_space_stand_in_for_each_other_under_the_name_of_who_answered(two):
    first, second = two
    made = settings(
        offer("first", "embedding", first.url, fallback="second", space="s"),
        offer("second", "embedding", second.url, space="s"),
    )
    first.always = Step(reset=True)
    with serving_api(made) as (url, _), httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.post("/v1/embeddings", json={"model": "first", "input": ["a", "b"]})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-fallback"] == answer.json()["model"] == "second"


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({}, {}, "vectors do not compare"),
        ({"space": "a"}, {"space": "b"}, "vectors do not compare"),
        ({"space": "a"}, {}, "same `space`"),
        ({"fallback": "nobody"}, {}, "no model 'nobody'"),
        ({"fallback": "first"}, {}, "itself"),
        ({"kind": "remote-chat"}, {}, "another kind"),
    ],
)
def test_a_fallback_that_cannot_be_is_refused_at_start(first, second, words):
    url = "http://127.0.0.1:9/v1"
    made = settings(
        {**offer("first", "embedding", url, fallback="second"), **first},
        {**offer("second", "embedding", f"{url}/other"), **second},
    )
    with pytest.raises(BadConfiguration, match=words) as caught:
        ApiServer(made, lambda what, share: None)
    assert caught.value.mistakes[0][0] == "models.0.fallback"


def test_the_same_model_at_the_same_place_needs_no_space():
    url = "http://127.0.0.1:9/v1"
    made = settings(
        offer("first", "embedding", url, fallback="second"), offer("second", "embedding", url)
    )
    ApiServer(made, lambda what, share: None).threads.close()


def test_a_model_of_this_machine_stands_in_for_one_elsewhere(two, tiny_embedder_folder: Path):
    first, _ = two
    here = {"name": "here", "kind": "embedding", "source": f"dir:{tiny_embedder_folder}"}
    made = settings(
        offer("first", "embedding", first.url, fallback="here", space="s"), {**here, "space": "s"}
    )
    first.always = Step(500)
    with serving_api(made) as (url, _), httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.post("/v1/embeddings", json={"model": "first", "input": "abc"})
        assert answer.headers["x-fallback"] == answer.json()["model"] == "here"
        prompted = {"model": "here", "input": "abc", "prompt_name": "query"}
        assert client.post("/v1/embeddings", json=prompted).status_code == 200
        listed = client.get("/v1/models").json()["data"]
    assert [entry["id"] for entry in listed] == ["first", "here"]


@pytest.mark.parametrize("value", [None, "", "two\nlines", "ключ"])
def test_a_key_that_is_not_there_is_named_at_start_by_its_variable(monkeypatch, value):
    monkeypatch.delenv("FAR_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("FAR_KEY", value)
    made = settings(offer("first", "chat", "http://127.0.0.1:9/v1", key_env="FAR_KEY"))
    with pytest.raises(TailraceError, match="FAR_KEY"):
        ApiServer(made, lambda what, share: None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://x/v1"},
        {"url": "https://user:secret@x/v1"},
        {"url": "https://x/v1?key=secret"},
        {"slots": 0},
        {"slots": {"floor": 9, "ceiling": 3}},
        {"fallback_on": ["no-such-code"]},
        {"key_env": "not a name"},
        {"timeouts": {"connect_s": 0}},
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="validation error"):
        settings({**offer("first", "chat", "http://127.0.0.1:9/v1"), **wrong})


def test_slots_that_adapt_grow_with_the_crowd_and_show_in_the_metrics(two):
    first, _ = two
    first.seconds = 0.02
    made = settings(offer("first", "chat", first.url, slots={"floor": 1, "ceiling": 8}))
    with serving_api(made) as (url, server):
        lane = server.catalogue.names["first"].served.lane
        assert lane.slots == 1
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: chat(url), range(120)))
        assert {answer.status_code for answer in answers} == {200}
        assert lane.slots > 1
        assert first.most <= 8
        with httpx.Client(base_url=url, trust_env=False) as client:
            text = client.get("/metrics").text
        assert f'tailrace_lane_slots{{model="first"}} {float(lane.slots)}' in text
