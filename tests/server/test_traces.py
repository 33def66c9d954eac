"""Spans as a collector gets them: of the review box, of the model server with an upstream, and off."""

import itertools
import subprocess
import sys
import threading
import time
from typing import Any

import httpx
import orjson
import pytest
from test_remote import KEY, QUICK, talk

from apis import fresh as letters
from apis import serving_tiny
from boxes import DOORS, ENVIRON, fresh, parts_of, serving
from collector import ERROR, UNSET, WORKER, Collector, Span, collecting
from tailrace.apps.api.settings import ApiSettings
from tailrace.serve.settings import BadConfiguration
from upstream import Step, serving_api, upstream

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"


def parent(flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{TRACE}-{CALLER}-{flags}"}


def adds_up(collector: Collector, whole: Span, timing: dict[str, float]) -> None:
    """The parts of `timing` (milliseconds) are the spans below `whole`, end to end, and nothing else."""
    parts = collector.parts(whole)
    assert [span.name for span in parts] == list(timing)
    assert parts[0].start_ns == whole.start_ns
    assert parts[-1].end_ns == whole.end_ns
    for before, after in itertools.pairwise(parts):
        assert after.start_ns == before.end_ns
    for span in parts:
        assert span.ms == pytest.approx(timing[span.name], abs=0.001)
        assert span.about["tailrace.part"] == span.name
        assert span.trace == whole.trace


def stream(*chunks: dict[str, Any]) -> list[bytes]:
    return [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks]


def test_every_part_of_server_timing_is_a_span_and_they_add_up_to_the_whole():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url) as box:
            timings = {}
            for door in ("limited", "batched", "naive", "queue"):
                answer = httpx.post(box.url + DOORS[door], json={"text": fresh()[0]})
                timings[door] = parts_of(answer.headers)
        for door, timing in timings.items():
            whole = collector.whole(f"POST {DOORS[door]}")
            adds_up(collector, whole, timing)
            assert whole.about["tailrace.door"] == door
            assert whole.about["tailrace.lane"] == ("naive" if door == "naive" else "review")
            assert whole.about["tailrace.outcome"] == "done"
            assert whole.about["gen_ai.operation.name"] == "rerank"
            assert whole.service == "tailrace-review"
            assert whole.status == UNSET
            assert abs(whole.start_ns / 1e9 - time.time()) < 60


def test_a_tickets_work_is_a_span_of_its_own_in_the_trace_of_who_handed_it_in():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url) as box:
            job = httpx.post(box.url + DOORS["queue"], json={"text": fresh()[0]}, headers=parent())
            where = box.url + job.headers["location"]
            while (told := httpx.get(where).json())["status"] != "done":
                time.sleep(0.02)
            waited = box.box.metrics.registry.get_sample_value(
                "review_part_seconds_count", {"door": "queue", "part": "infer"}
            )
        assert waited == 1
        asked = collector.whole(f"POST {DOORS['queue']}")
        (work,) = collector.wholes(WORKER)
        assert (work.name, work.trace, work.parent) == ("queue job", TRACE, asked.id)
        parts = {span.name: span.ms for span in collector.parts(work)}
        assert sum(parts.values()) == pytest.approx(work.ms, abs=0.001)
        assert parts["wait"] + parts["batch"] == pytest.approx(told["waited_ms"], abs=0.002)
        model_ms = sum(parts[name] for name in ("tokenize", "infer", "post"))
        assert model_ms == pytest.approx(told["inference_ms"], abs=0.002)


def test_a_span_belongs_to_the_callers_trace():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url) as box:
            text = {"text": fresh()[0]}
            httpx.post(box.url + DOORS["limited"], json=text, headers=parent())
            bad = {"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"}
            httpx.post(box.url + DOORS["batched"], json=text, headers=bad)
        whole = collector.whole(f"POST {DOORS['limited']}")
        assert (whole.trace, whole.parent) == (TRACE, CALLER)
        other = collector.whole(f"POST {DOORS['batched']}")
        assert other.parent == ""
        assert other.trace not in {TRACE, "0" * 32}


def test_what_was_refused_or_failed_says_so_and_no_text_is_ever_sent():
    secret = "a text that nobody must see"
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url, poison=(secret,)) as box:
            httpx.post(box.url + DOORS["limited"], json={"text": secret})
            httpx.post(box.url + DOORS["batched"] + "?q=hidden", json={"no": secret})
            httpx.get(box.url + "/nowhere/at/all")
            httpx.get(box.url + "/livez")
            httpx.get(box.url + "/api/queue/jobs/unknown-job")
        failed = collector.whole(f"POST {DOORS['limited']}")
        assert (failed.status, failed.about["error.type"]) == (ERROR, "model-failed")
        assert failed.about["http.response.status_code"] == 500
        unusable = collector.whole(f"POST {DOORS['batched']}")
        assert (unusable.status, unusable.about["error.type"]) == (UNSET, "invalid-input")
        assert unusable.about["tailrace.outcome"] == "failed"
        nowhere = collector.whole("GET")
        assert [span.name for span in collector.parts(nowhere)] == ["handle"]
        assert (
            collector.whole("GET /api/queue/jobs/{job_id}").about["error.type"] == "ticket-unknown"
        )
        assert not [span for span in collector.spans if "livez" in span.name]
        assert secret not in str(collector.spans)
        assert "hidden" not in str(collector.spans)


def test_who_hangs_up_leaves_a_span_with_the_parts_that_were_reached():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url, seconds=1.0) as box:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(box.url + DOORS["limited"], json={"text": fresh()[0]}, timeout=0.3)
            box.quiet()
        whole = collector.whole(f"POST {DOORS['limited']}")
        assert whole.about["tailrace.outcome"] == "left"
        assert whole.status == UNSET
        names = [span.name for span in collector.parts(whole)]
        assert names[:4] == ["parse", "cache", "admit", "wait"]
        assert "serialize" not in names
        assert 100 < whole.ms < 1000


def test_a_share_of_new_traces_is_kept_and_a_callers_decision_is_followed():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url, tracing__sample=0.0) as box:
            for text in fresh(5):
                httpx.post(box.url + DOORS["batched"], json={"text": text})
            httpx.post(box.url + DOORS["limited"], json={"text": fresh()[0]}, headers=parent())
        assert [span.trace for span in collector.wholes()] == [TRACE]
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url) as box:
            asked = {"json": {"text": fresh()[0]}, "headers": parent("00")}
            httpx.post(box.url + DOORS["limited"], **asked)
        assert TRACE not in {span.trace for span in collector.spans}
        assert collector.spans


def test_embeddings_bear_the_names_of_the_conventions(tiny_embedder_folder):
    with collecting() as collector:
        with serving_tiny(tiny_embedder_folder, tracing__endpoint=collector.url) as api:
            body = {"input": letters(3), "model": "tiny"}
            answer = httpx.post(f"{api.url}/v1/embeddings", json=body)
            usage = answer.json()["usage"]
            timing = parts_of(answer.headers)
        whole = collector.whole("POST /v1/embeddings")
        adds_up(collector, whole, timing)
        about = whole.about
        assert about["gen_ai.operation.name"] == "embeddings"
        assert about["gen_ai.request.model"] == about["gen_ai.response.model"] == "tiny"
        assert about["gen_ai.usage.input_tokens"] == usage["prompt_tokens"]
        assert about["tailrace.batch_size"] == int(answer.headers["x-batch-size"])


def remote(url: str, endpoint: str | None) -> ApiSettings:
    common = {"url": url, "key_env": "FAR_KEY", "timeouts": QUICK, "slots": 4}
    models = [
        {"name": "far", "kind": "remote-embedding", "model": "far-embed", **common},
        {"name": "talk", "kind": "remote-chat", "model": "far-chat", **common},
    ]
    tracing = {"endpoint": endpoint}
    return ApiSettings.model_validate({"models": models, "tracing": tracing})


def test_a_request_upstream_carries_the_trace_and_a_chat_tells_tokens_and_finish(monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    said = [
        {"choices": [{"index": 0, "delta": {"content": "a word that is nobody's affair"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    ]
    with collecting() as collector, upstream() as far:
        with serving_api(remote(far.url, collector.url)) as (url, _):
            asked = {"json": {"input": ["one"], "model": "far"}, "headers": parent()}
            embedded = httpx.post(f"{url}/v1/embeddings", **asked)
            far.always = Step(
                headers={"content-type": "text/event-stream"},
                pieces=stream(*said),
            )
            body = talk("never in a span", stream=True)
            httpx.post(f"{url}/v1/chat/completions", json=body, headers=parent())
        first = collector.whole("POST /v1/embeddings")
        adds_up(collector, first, parts_of(embedded.headers))
        names = [span.name for span in collector.parts(first)]
        assert {"wait", "connect", "send", "first-byte", "transfer"} <= set(names)
        chat = collector.whole("POST /v1/chat/completions")
        for asked_of, whole in zip(far.asked, (first, chat), strict=True):
            assert asked_of.headers["traceparent"] == f"00-{TRACE}-{whole.id}-01"
        assert chat.about["gen_ai.operation.name"] == "chat"
        assert chat.about["gen_ai.request.stream"] is True
        assert chat.about["gen_ai.usage.input_tokens"] == 7
        assert chat.about["gen_ai.usage.output_tokens"] == 3
        assert chat.about["gen_ai.response.finish_reasons"] == ["length"]
        assert "transfer" in [span.name for span in collector.parts(chat)]
        assert "affair" not in str(collector.spans)
        assert "never in a span" not in str(collector.spans)
        assert KEY not in str(collector.spans)


def test_a_stream_that_breaks_off_is_an_error_though_its_status_was_good(monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    with collecting() as collector, upstream() as far:
        with serving_api(remote(far.url, collector.url)) as (url, _):
            said = stream({"choices": [{"index": 0, "delta": {"content": "a"}}]})
            head = {"content-type": "text/event-stream"}
            far.always = Step(headers=head, pieces=said, reset=True)
            httpx.post(f"{url}/v1/chat/completions", json=talk("x", stream=True))
        whole = collector.whole("POST /v1/chat/completions")
        assert whole.about["http.response.status_code"] == 200
        assert (whole.status, whole.about["error.type"]) == (ERROR, "upstream-failed")


def test_every_name_of_ours_in_gen_ai_is_one_of_the_conventions():
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    from tailrace.wire import tracing

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")}
    ours = {value for value in vars(tracing).values() if str(value).startswith("gen_ai.")}
    assert len(ours) >= 9
    assert ours <= known


@pytest.mark.parametrize("away", ["silent", "gone", "failing"])
def test_a_collector_that_does_not_take_them_neither_slows_nor_stops_serving(away):
    with collecting() as collector:
        url = collector.url
        if away == "silent":
            collector.released.clear()
        elif away == "gone":
            url = "http://127.0.0.1:9"
        else:
            collector.status = 500
        began = time.monotonic()
        settings: dict[str, Any] = {
            "tracing__endpoint": url,
            "tracing__queue_max": 8,
            "tracing__send_max_s": 0.5,
        }
        with serving(seconds=0.0, **settings) as box, httpx.Client(base_url=box.url) as client:
            for text in fresh(40):
                assert client.post(DOORS["limited"], json={"text": text}).status_code == 200
            lost = box.box.metrics.registry.get_sample_value("review_traces_lost")
            assert lost is not None
            assert lost >= 40 - 8 - 8 - 1  # those that wait, and those on their way
            leaving = time.monotonic()
        assert time.monotonic() - leaving < 10
        assert time.monotonic() - began < 60


def test_a_collector_without_the_extra_is_a_mistake_of_the_configuration(monkeypatch):
    monkeypatch.delitem(sys.modules, "tailrace.wire.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with (
        pytest.raises(BadConfiguration, match=r"tailrace\[otel\]"),
        serving(tracing__endpoint="http://x"),
    ):
        pass


IN_A_CHILD = """
import sys
from tailrace.apps.review.app import review_app
from tailrace.latency.measure import measure
from tailrace.apps.api.app import api_app
from tailrace.apps.books.app import books_app
import tailrace.cli.main
from tailrace.wire.tracing import Choice, open_tracing
assert open_tracing(Choice(), "x") is None
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))])
"""


def test_without_a_collector_the_library_is_never_read():
    environ = {name: value for name, value in ENVIRON.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CHILD],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
        timeout=120,
    )
    assert done.stdout.strip() == "[]"


def test_without_a_collector_nothing_is_begun_and_nothing_passed_on(monkeypatch):
    monkeypatch.setenv("FAR_KEY", KEY)
    with upstream() as far:
        settings = remote(far.url, None)
        with serving_api(settings) as (url, server):
            assert server.tracer is None
            before = {thread.name for thread in threading.enumerate()}
            httpx.post(
                f"{url}/v1/embeddings", json={"input": ["one"], "model": "far"}, headers=parent()
            )
        assert not [name for name in before if name.startswith("Otel")]
        assert "traceparent" not in far.asked[0].headers
