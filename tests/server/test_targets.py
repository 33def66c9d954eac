"""What is sent to each kind of target and how its answers are read, against scripted servers and our own."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from boxes import Served, fresh
from scripted import Answer, reply, scripted
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.targets.doors import DOORS, door
from tailrace.latency.targets.embeddings import openai_embeddings, tei_embed
from tailrace.latency.targets.port import Target
from tailrace.latency.targets.reranks import rerank
from tailrace.wire.record import IDENTITY_MS, Row

TEXTS = ("하나", "둘", "셋")


def ask(
    make: Callable[[str], Target], *answers: Answer, times: int = 1
) -> tuple[list[Row], list[bytes]]:
    async def main() -> tuple[list[Row], list[bytes]]:
        async with scripted(*answers) as server, Pool() as pool:
            target = make(server.url)
            rows = [await measure(pool, target, index) for index in range(times)]
            return rows, server.requests

    rows, requests = asyncio.run(main())
    for row in rows:
        assert abs(row.miss_ms()) <= IDENTITY_MS
    return rows, requests


def sent(request: bytes) -> tuple[str, Any]:
    head, _, body = request.partition(b"\r\n\r\n")
    return head.split(b" ")[1].decode(), json.loads(body)


def json_reply(answer: Any, *headers: tuple[str, str]) -> Answer:
    return [
        reply(json.dumps(answer).encode(), headers=[("content-type", "application/json"), *headers])
    ]


def vectors(count: int) -> dict[str, Any]:
    data = [{"embedding": [0.1, 0.2], "index": i} for i in range(count)]
    return {"data": data, "model": "m-1", "usage": {"prompt_tokens": 9, "total_tokens": 9}}


def test_openai_embeddings() -> None:
    rows, requests = ask(
        lambda url: openai_embeddings(url + "/v1", TEXTS, model="m", batch=2),
        json_reply(vectors(2), ("openai-processing-ms", "0")),
        times=2,
    )
    assert [sent(request) for request in requests] == [
        ("/v1/embeddings", {"model": "m", "input": ["하나", "둘"], "encoding_format": "float"}),
        ("/v1/embeddings", {"model": "m", "input": ["셋", "하나"], "encoding_format": "float"}),
    ]
    assert rows[0].prompt != rows[1].prompt
    assert rows[0].outcome == "ok"
    told = {"batch_size": 2, "dimensions": 2, "input_tokens": 9, "model": "m-1"}
    assert told.items() <= rows[0].detail.items()
    assert rows[0].parts["infer"].source == "declared"


def test_tei_with_its_own_figures() -> None:
    headers = [("x-total-time", "1"), ("x-tokenization-time", "0"), ("x-queue-time", "5")]
    rows, requests = ask(
        lambda url: tei_embed(url, TEXTS),
        json_reply([[0.1, 0.2]], *headers, ("x-inference-time", "900"), ("x-compute-tokens", "7")),
    )
    assert sent(requests[0]) == ("/embed", {"inputs": ["하나"]})
    assert rows[0].parts["infer"].ms == 900
    assert rows[0].parts["other"].ms < 0
    assert "took longer" in rows[0].detail["inconsistent"]
    assert rows[0].detail["input_tokens"] == 7
    assert rows[0].detail["declared"]["tei"]["x-total-time"] == 1


@pytest.mark.parametrize(
    ("flavour", "path", "body"),
    [
        (
            "cohere",
            "/v2/rerank",
            {"model": "m", "query": "q", "documents": ["하나", "둘"], "top_n": 2},
        ),
        (
            "jina",
            "/v1/rerank",
            {"model": "m", "query": "q", "documents": ["하나", "둘"], "top_n": 2},
        ),
        ("tei", "/rerank", {"query": "q", "texts": ["하나", "둘"]}),
    ],
)
def test_rerank(flavour: Any, path: str, body: dict[str, Any]) -> None:
    results = [{"index": 0, "relevance_score": 0.9}, {"index": 1, "relevance_score": 0.1}]
    rows, requests = ask(
        lambda url: rerank(url, TEXTS, flavour=flavour, query="q", model="m", batch=2),
        json_reply(results if flavour == "tei" else {"results": results}),
    )
    assert sent(requests[0]) == (path, body)
    assert rows[0].outcome == "ok"


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"[]", b"{}", b"null", b'{"data": [1, 2, 3]}', b'{"data":']
)
def test_an_answer_that_is_none_is_a_marked_row(body: bytes) -> None:
    for make in (
        lambda url: openai_embeddings(url, TEXTS, model="m"),
        lambda url: tei_embed(url, TEXTS, batch=2),
        lambda url: rerank(url, TEXTS, flavour="jina", query="q", batch=3),
        lambda url: door(url, "limited", TEXTS),
        lambda url: door(url, "queue", TEXTS),
    ):
        rows, _ = ask(make, [reply(body)])
        assert rows[0].outcome == "error"
        assert rows[0].detail["error"]


@pytest.mark.parametrize("name", sorted(DOORS))
def test_a_door_of_the_box_tells_its_own_parts(box: Served, name: str) -> None:
    async def main() -> list[Row]:
        async with Pool() as pool:
            target = door(f"{box.url}/api", name, fresh(3))
            return [await measure(pool, target, index) for index in range(3)]

    for row in asyncio.run(main()):
        assert row.outcome == "ok", row.detail
        assert abs(row.miss_ms()) <= IDENTITY_MS
        assert row.parts["infer"].source == "declared"
        assert row.parts["infer"].ms > 30
        assert row.parts["infer"].ms < row.wall_ms
        assert row.parts["other"].ms + row.parts["net"].ms > -0.01
        assert "inconsistent" not in row.detail


def test_an_answer_out_of_the_cache_says_so(box: Served) -> None:
    async def main() -> list[Row]:
        async with Pool() as pool:
            target = door(f"{box.url}/api", "limited", fresh(1))
            return [await measure(pool, target, index) for index in range(2)]

    first, second = asyncio.run(main())
    assert (first.detail["cache"], second.detail["cache"]) == ("miss", "hit")
    assert "infer" not in second.parts


def test_a_ticket_that_takes_too_long_is_a_timeout(box: Served) -> None:
    async def main() -> Row:
        async with Pool() as pool:
            return await measure(pool, door(f"{box.url}/api", "queue", fresh(1)), 0, timeout_s=0.02)

    row = asyncio.run(main())
    assert row.outcome == "timeout"
    assert row.wall_ms >= 20
    assert abs(row.miss_ms()) <= IDENTITY_MS
