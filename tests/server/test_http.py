"""What HTTP sees: every answer stamped, every error a problem, and whatever comes, the box lives on."""

import asyncio
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from boxes import DOORS, Served, fresh, parts_of, problem_of, serving

JSON = {"content-type": "application/json"}


def lives(box: Served) -> None:
    assert box.ask("limited", fresh()[0]).status_code == 200


# -- every answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("HEAD", "/", 200),
        ("GET", "/livez", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/api/stats", 200),
        ("GET", "/api/model", 200),
        ("GET", "/api/docs", 200),
        ("GET", "/api/docs/swagger-ui.css", 200),
        ("GET", "/api/docs/nothing.js", 404),
        ("GET", "/api/openapi.json", 200),
        ("GET", "/page/nothing.js", 404),
        ("GET", "/page/../../../../etc/passwd", 404),
        ("GET", "/page/%2e%2e/%2e%2e/settings.py", 404),
        ("GET", "/page/%00", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api", 404),
        ("GET", "/api/limited/predict", 405),
        ("PUT", "/api/limited/predict", 405),
        ("DELETE", "/api/queue/jobs", 405),
        ("POST", "/api/queue/jobs/x", 405),
        ("POST", "/api/stats", 405),
        ("POST", "/", 405),
        ("POST", "/livez", 405),
        ("POST", "/api/docs", 405),
        ("POST", "/page/index.html", 405),
        ("OPTIONS", "/api/limited/predict", 405),
        ("GET", "/api/queue/jobs/unknown", 404),
        ("POST", "/api/limited/predict", 415),
        ("POST", "/api/crowd", 415),
    ],
)
def test_every_answer_is_stamped_and_every_error_is_a_problem(
    box: Served, method: str, path: str, status: int
) -> None:
    with box.client() as client:
        answer = client.request(method, path)
    assert answer.status_code == status
    parts_of(answer.headers)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    if status >= 400:
        problem_of(answer, status, answer.json()["code"])
    if status == 405:
        assert answer.headers["allow"]
        assert method not in answer.headers["allow"].split(", ")


def test_answers_of_every_kind_through_the_doors_are_stamped(box: Served) -> None:
    for door in DOORS:
        text = fresh()[0]
        for answer in (box.ask(door, text), box.ask(door, text), box.ask(door, "")):
            parts_of(answer.headers)


def test_a_range_that_makes_no_sense_is_a_problem_too(box: Served) -> None:
    for wanted in ("bytes=999999999-", "bytes=x-y", "lines=1-2"):
        answer = box.get("/", headers={"Range": wanted})
        parts_of(answer.headers)
        if answer.status_code >= 400:
            problem_of(answer, answer.status_code, answer.json()["code"])


# -- bad input ----------------------------------------------------------------------------------

BAD_BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 400),
    "not json": (b"text=hello", 400),
    "half": (b'{"text": "x', 400),
    "NaN": (b'{"text": NaN}', 400),
    "bytes that are no UTF-8": (b'{"text": "\xff\xfe"}', 400),
    "nested without end": (b"[" * 100_000, 400),
    "an array": (b"[]", 422),
    "no text": (b"{}", 422),
    "null": (b'{"text": null}', 422),
    "a number": (b'{"text": 12345678901234567890123456789012345678901234567890}', 422),
    "a list": (b'{"text": ["x"]}', 422),
    "empty": (b'{"text": ""}', 422),
    "white space": (b'{"text": " \\n\\t "}', 422),
    "NUL": (b'{"text": "a\\u0000b"}', 422),
    "a lone surrogate": (b'{"text": "a\\ud800b"}', 422),
    "a hundred thousand characters": (
        json.dumps({"text": "가" * 100_000}, ensure_ascii=False).encode(),
        422,
    ),
    "two megabytes": (b'{"text": "' + b"x" * (2 << 20) + b'"}', 413),
}


@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize("name", list(BAD_BODIES))
def test_bad_input_is_a_problem_with_the_right_status_at_every_door(
    box: Served, name: str, door: str
) -> None:
    body, status = BAD_BODIES[name]
    runs = len(box.model.script.runs)
    with box.client() as client:
        answer = client.post(DOORS[door], content=body, headers=JSON)
        problem_of(answer, status, answer.json()["code"])
        assert client.get("/livez").status_code == 200
    assert len(box.model.script.runs) == runs


def test_the_limit_of_characters_is_said_in_the_answer(box: Served) -> None:
    answer = box.ask("limited", "x" * 2001)
    assert (
        "2001 characters; the limit is 2000" in problem_of(answer, 422, "invalid-input")["detail"]
    )


@pytest.mark.parametrize("given", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_415(box: Served, given: str) -> None:
    with box.client() as client:
        answer = client.post(
            DOORS["limited"], content=b'{"text": "x"}', headers={"content-type": given}
        )
    problem_of(answer, 415, "wrong-content-type")


@pytest.mark.parametrize("path", ["/api/limited/predict/", "/api/stats/", "//api/stats"])
def test_a_stray_slash_leads_somewhere_or_nowhere_but_never_astray(box: Served, path: str) -> None:
    with box.client() as client:
        answer = client.get(path)
    assert answer.status_code in {307, 404, 405}
    if answer.status_code == 307:
        assert answer.headers["location"].startswith(box.url)


# -- on the wire --------------------------------------------------------------------------------


def post(body: bytes, *more: str, path: str = DOORS["limited"]) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: box",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def text_body() -> bytes:
    return json.dumps({"text": fresh()[0]}).encode()


def exchange(box: Served, raw: bytes, answers: int = 1) -> list[str]:
    """Send bytes as they are; the status lines of so many answers."""
    with socket.create_connection(("127.0.0.1", box.port), timeout=30) as s:
        s.sendall(raw)
        got = b""
        while len(lines := re.findall(rb"HTTP/1\.1 \d{3}", got)) < answers:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    return [line.decode()[-3:] for line in lines]


def test_requests_sent_without_waiting_for_answers_are_answered_in_order(box: Served) -> None:
    raw = post(text_body()) + post(b"{}") + post(text_body()) + post(b"x")
    assert exchange(box, raw, 4) == ["200", "422", "200", "400"]
    lives(box)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/limited/predict HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/limited/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999999999999999\r\n\r\n",
        b"POST /api/limited/predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Big: " + b"x" * 300_000 + b"\r\n\r\n",
        (
            b"GET /api/stats HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET " + b"/x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_nonsense_on_the_wire_does_no_harm(box: Served, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", box.port), timeout=5) as s:
        try:
            s.sendall(raw)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except (ConnectionError, TimeoutError):
            pass
    lives(box)


def test_bodies_that_trickle_in_keep_nobody_else_from_being_served(box: Served) -> None:
    slow = [socket.create_connection(("127.0.0.1", box.port)) for _ in range(60)]
    try:
        for s in slow:
            s.sendall(post(text_body())[:-10])
        lives(box)
        assert box.crowd("batched", fresh(4))[0].status == 200
        assert box.get("/livez").status_code == 200
    finally:
        for s in slow:
            s.close()
    assert box.quiet()["doors"]["limited"]["in_progress"] == 0


def test_a_body_that_comes_in_single_bytes_is_read(box: Served) -> None:
    body = text_body()
    head, _, _ = post(body).partition(b"\r\n\r\n")
    with socket.create_connection(("127.0.0.1", box.port), timeout=30) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(head + b"\r\n\r\n")
        for byte in body:
            s.sendall(bytes([byte]))
        assert s.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_chunked_body_without_a_length_is_read_and_bounded(box: Served) -> None:
    def pieces(size: int) -> Any:
        yield b'{"text": "'
        for _ in range(size):
            yield b"x" * 1000
        yield b'"}'

    with box.client() as client:
        assert client.post(DOORS["limited"], content=pieces(1), headers=JSON).status_code == 200
        answer = client.post(DOORS["limited"], content=pieces(1500), headers=JSON)
        problem_of(answer, 413, "too-large")
    lives(box)


def test_three_hundred_idle_connections_keep_nobody_out(box: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", box.port)) for _ in range(300)]
    try:
        lives(box)
    finally:
        for s in idle:
            s.close()


def test_one_connection_serves_many_requests_one_after_another(box: Served) -> None:
    with box.client() as client:
        for path in ["/livez"] * 50:
            assert client.get(path).status_code == 200
        for body in (b"", b"{}", text_body()):
            client.post(DOORS["limited"], content=body, headers=JSON)
        assert client.get("/livez").status_code == 200


def test_two_hundred_callers_at_once_are_all_answered_with_something_sensible(box: Served) -> None:
    callers = box.crowd("limited", fresh(200))
    assert {c.status for c in callers} <= {200, 429}
    assert sum(c.status == 200 for c in callers) >= 5
    for caller in callers:
        parts_of(caller.headers)


# -- looking in ---------------------------------------------------------------------------------


def test_stats_tell_the_box_as_it_is(box: Served) -> None:
    stats = box.stats()
    assert set(stats) >= {"lane", "doors", "tickets", "cache", "naive", "model", "ready"}
    assert set(stats["doors"]) == set(DOORS)
    assert stats["doors"]["limited"]["seats"] == 4
    assert stats["tickets"]["limit"] == 20
    assert stats["naive"]["limit_bytes"] > stats["naive"]["rss_bytes"] > 0


def test_the_models_card_names_its_topics_and_fingerprint(box: Served) -> None:
    card = box.get("/api/model").json()
    assert card["fingerprint"]
    assert len(card["topics"]) == 24
    assert (card["weak_below"], card["text_max_chars"]) == (0.35, 2000)


def metrics(box: Served) -> dict[str, float]:
    lines = box.get("/metrics").text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


EXPECTED_AT_START = [
    *(f'review_in_progress{{door="{door}"}}' for door in DOORS),
    *(f'review_waiting{{door="{door}"}}' for door in DOORS),
    *(f'review_refused_total{{door="{door}",reason="lane-full"}}' for door in DOORS),
    *(f'review_cache_total{{door="{door}",result="hit"}}' for door in DOORS),
    *(f'review_inference_seconds_count{{door="{door}"}}' for door in DOORS),
    *(f'review_waited_seconds_count{{door="{door}"}}' for door in DOORS),
    *(f'review_tickets{{state="{state}"}}' for state in ("queued", "running", "done", "failed")),
    *(f'review_child_restarts_total{{reason="{why}"}}' for why in ("limit", "kernel", "crash")),
    "review_batch_size_count",
]


def test_every_series_is_there_with_nought_from_the_start_and_none_appears_later() -> None:
    with serving(seconds=0.01) as box:
        before = metrics(box)
        assert [name for name in EXPECTED_AT_START if before.get(name) != 0.0] == []
        for door in DOORS:
            box.crowd(door, fresh(12))
        box.crowd("limited", fresh(30))
        box.quiet()
        after = metrics(box)
        known = {re.sub(r"_(bucket|created)\{.*|_created$", "", name) for name in before}
        late = {re.sub(r"_(bucket|created)\{.*|_created$", "", name) for name in after} - known
        assert late == set()
        for door in DOORS:
            assert after[f'review_in_progress{{door="{door}"}}'] == 0.0
            assert after[f'review_waiting{{door="{door}"}}'] == 0.0
        assert after["review_running"] == 0.0
        assert after['review_tickets{state="running"}'] == 0.0
        assert after['review_answered_total{door="queue",outcome="done"}'] == 12.0


def test_what_is_counted_agrees_with_what_was_answered() -> None:
    with serving(seconds=0.02, naive__enabled=False) as box:
        callers = box.crowd("limited", fresh(20)) + box.crowd("batched", fresh(10))
        box.quiet()
        seen, stats = metrics(box), box.stats()
        for door, mine in (("limited", callers[:20]), ("batched", callers[20:])):
            good = sum(c.status == 200 for c in mine)
            full = sum(c.status == 429 for c in mine)
            assert seen[f'review_answered_total{{door="{door}",outcome="done"}}'] == good
            assert seen[f'review_refused_total{{door="{door}",reason="lane-full"}}'] == full
            assert seen[f'review_inference_seconds_count{{door="{door}"}}'] == good
            assert stats["doors"][door]["answered"] == good
        assert seen['review_runs_total{result="failed"}'] == 0.0
        assert (
            seen["review_batch_size_sum"]
            == seen['review_answered_total{door="limited",outcome="done"}'] + 10
        )


# -- documentation of the API -------------------------------------------------------------------


def test_the_swagger_page_and_its_files_come_from_the_box_alone(box: Served) -> None:
    page = box.get("/api/docs").text
    refs = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert refs
    base = httpx.URL(box.url + "/api/docs")
    for ref in refs:
        if ref.startswith("data:"):
            continue
        assert not re.match(r"(https?:)?//", ref), ref
        assert box.get(base.join(ref).path).status_code == 200
    start = box.get("/api/docs/start.js").text
    assert not re.search(r"https?://", start)
    assert "<script>" not in page
    assert " style=" not in page


def test_the_openapi_document_describes_every_door(box: Served) -> None:
    document = box.get("/api/openapi.json").json()
    for path in DOORS.values():
        operation = document["paths"][path]["post"]
        assert operation["summary"]
        assert {"400", "413", "415", "422", "429", "503"} <= set(operation["responses"])
    assert "get" in document["paths"]["/api/queue/jobs/{job_id}"]
    ids = [op["operationId"] for path in document["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))


def test_the_page_asks_nobody_else_for_anything(box: Served) -> None:
    page = box.get("/").text
    for ref in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert not re.match(r"(https?:)?//", ref), ref


def test_no_file_of_the_house_is_served_beside_the_page(box: Served) -> None:
    for path in ("/page/../routes.py", "/api/docs/../body.py", "/page/..%2froutes.py"):
        with socket.create_connection(("127.0.0.1", box.port), timeout=10) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while piece := s.recv(65536):
                got += piece
        assert got.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), path


# -- events and crowds --------------------------------------------------------------------------


async def events(
    box: Served, until: Callable[[list[dict[str, Any]]], bool], **headers: str
) -> tuple[list[int], list[dict[str, Any]]]:
    ids: list[int] = []
    data: list[dict[str, Any]] = []
    async with (
        httpx.AsyncClient(base_url=box.url, timeout=20, trust_env=False, verify=False) as client,
        client.stream("GET", "/api/events", headers=headers) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        parts_of(answer.headers)
        kind = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("id: "):
                ids.append(int(line[4:]))
            elif line.startswith("data: "):
                assert kind == "stats"
                data.append(json.loads(line[6:]))
                if until(data):
                    break
    return ids, data


def test_the_stream_tells_the_stats_at_once_and_then_every_change_with_rising_numbers(
    box: Served,
) -> None:
    async def main() -> tuple[list[int], list[dict[str, Any]]]:
        async def visit() -> None:
            await asyncio.sleep(0.3)
            await asyncio.to_thread(box.crowd, "queue", fresh(8))

        going = asyncio.create_task(visit())
        result = await events(
            box, lambda data: len(data) > 3 and data[-1]["tickets"]["queued"] == 0
        )
        await going
        return result

    ids, data = asyncio.run(main())
    assert ids == sorted(set(ids))
    assert set(data[0]) == set(box.stats())
    assert max(d["tickets"]["queued"] for d in data) > 0


def test_a_page_that_comes_back_goes_on_from_its_last_number(box: Served) -> None:
    first, _ = asyncio.run(events(box, bool))
    later = first[-1] + 1000
    ids, _ = asyncio.run(events(box, bool, **{"Last-Event-ID": str(later)}))
    assert ids[0] >= later


@pytest.mark.parametrize("given", ["x", "-1", "²", "9" * 6000, "1e9"])
def test_a_last_number_that_is_none_is_passed_over(box: Served, given: str) -> None:
    raw = given.encode("latin-1")
    with (
        box.client() as client,
        client.stream("GET", "/api/events", headers=[(b"last-event-id", raw)]) as answer,  # type: ignore[list-item]
    ):
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("id: "):
                assert int(line[4:]) < 10**9
                break


def test_streams_are_bounded_and_their_places_come_back() -> None:
    with serving(seconds=0.0, naive__enabled=False, server__streams_max=3) as box:
        with box.client() as client:
            open_streams = [client.send(_stream(client), stream=True) for _ in range(3)]
            reading = [answer.iter_raw() for answer in open_streams]
            for pieces in reading:
                next(pieces)
            refused = client.send(_stream(client), stream=True)
            assert refused.status_code == 429
            refused.read()
            problem_of(refused, 429, "rate-limited")
            assert int(refused.headers["retry-after"]) >= 1
            for answer in open_streams:
                answer.close()
        for _ in range(100):
            with box.client() as client, client.stream("GET", "/api/events") as answer:
                if answer.status_code == 200:
                    return
        raise AssertionError("the places never came back")


def _stream(client: httpx.Client) -> httpx.Request:
    return client.build_request("GET", "/api/events")


@pytest.mark.parametrize("door", list(DOORS))
def test_the_boxs_own_crowd_tells_a_line_for_each_caller_and_one_at_the_end(
    box: Served, door: str
) -> None:
    count = 3 if door == "naive" else 12
    with box.client() as client:
        body = {"door": door, "texts": fresh(count), "fresh": True}
        with client.stream("POST", "/api/crowd", json=body) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/x-ndjson"
            parts_of(answer.headers)
            lines = [json.loads(line) for line in answer.iter_lines()]
    assert lines[-1]["end"] is True
    done = [line for line in lines[:-1] if line["done"]]
    assert sorted(line["i"] for line in done) == list(range(count))
    for line in done:
        assert line["server_timing"]
        assert line["round_trip_ms"] > 0
        assert line["error"] is None
    if door == "limited":
        assert sorted(line["status"] for line in done) == [200] * 5 + [429] * 7


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"door": "back"},
        {"door": "limited"},
        {"door": "limited", "texts": []},
        {"door": "limited", "texts": ["x"] * 61},
        {"door": "limited", "texts": "x"},
        {"door": "limited", "texts": ["x", None]},
        {"door": "limited", "texts": ["x" * 2001]},
        {"door": ["limited"], "texts": ["x"]},
        {"door": {"x": 1}, "texts": ["x"]},
    ],
    ids=str,
)
def test_a_crowd_that_cannot_be_sent_is_refused(box: Served, body: dict[str, Any]) -> None:
    with box.client() as client:
        answer = client.post("/api/crowd", json=body)
    problem_of(answer, 422, "invalid-input")


def test_a_third_crowd_is_told_to_come_back(box: Served) -> None:
    async def main() -> httpx.Response:
        limits = httpx.Limits(max_connections=10)
        async with httpx.AsyncClient(
            base_url=box.url, timeout=60, limits=limits, trust_env=False, verify=False
        ) as client:
            going = [
                asyncio.create_task(
                    client.post("/api/crowd", json={"door": "queue", "texts": fresh(10)})
                )
                for _ in range(2)
            ]
            await asyncio.sleep(0.3)
            third = await client.post("/api/crowd", json={"door": "queue", "texts": fresh(2)})
            await asyncio.gather(*going)
            return third

    third = asyncio.run(main())
    problem_of(third, 429, "lane-full")
    assert int(third.headers["retry-after"]) >= 1


def test_a_page_that_leaves_its_crowd_takes_it_along(box: Served) -> None:
    with box.client() as client:
        body = {"door": "queue", "texts": fresh(12)}
        with client.stream("POST", "/api/crowd", json=body) as answer:
            next(answer.iter_lines())
    box.quiet()
    for _ in range(3):
        with box.client() as client:
            body = {"door": "limited", "texts": fresh(1)}
            assert client.post("/api/crowd", json=body).status_code == 200


def test_the_streams_of_a_stopping_box_end_by_themselves() -> None:
    async def read(box: Served, opened: asyncio.Event) -> int:
        count = 0
        async with (
            httpx.AsyncClient(
                base_url=box.url, timeout=20, trust_env=False, verify=False
            ) as client,
            client.stream("GET", "/api/events") as answer,
        ):
            async for _ in answer.aiter_lines():
                count += 1
                opened.set()
        return count

    async def main() -> int:
        context = serving(seconds=0.0, naive__enabled=False)
        box = await asyncio.to_thread(context.__enter__)
        opened = asyncio.Event()
        reading = asyncio.create_task(read(box, opened))
        await opened.wait()
        await asyncio.to_thread(context.__exit__, None, None, None)
        return await asyncio.wait_for(reading, 10)

    assert asyncio.run(main()) > 0


def test_nothing_in_the_answers_names_a_place_on_the_machine(box: Served) -> None:
    home = str(Path(__file__).resolve().parents[2])
    with box.client() as client:
        for path in ("/", "/api/stats", "/api/model", "/api/openapi.json", "/metrics"):
            assert home not in client.get(path).text
