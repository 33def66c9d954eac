"""Whatever comes in, nothing inside breaks: bodies over every entry, and bytes on the socket."""

import contextlib
import json
import socket
import struct
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrix import need

from apis import Api

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

PATHS = [
    *("/v1/embeddings", "/embeddings", "/embed", "/embed_all", "/embed_sparse", "/predict", "/"),
    *("/similarity", "/tokenize", "/decode", "/invocations", "/rerank", "/classify", "/reranking"),
    *("/v1/rerank", "/v2/rerank", "/v1/reranking", "/tei/default/embed", "/tei/rerank/rerank"),
]
calm = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TEXTS = st.one_of(
    st.sampled_from(["", "a", "주차", "\0", "a" * 3000, "\ud800", "☠", "query", "left", "text"]),
    st.text(max_size=20),
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
VALUES = st.recursive(
    PLAIN,
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(TEXTS, below, max_size=3)),
    max_leaves=8,
)
FIELDS = [
    *("input", "inputs", "texts", "documents", "query", "ids", "model", "dimensions", "top_n"),
    *("encoding_format", "truncate", "truncation_direction", "prompt_name", "normalize", "task"),
    *("raw_scores", "return_text", "return_documents", "input_type", "max_tokens_per_doc"),
    *("parameters", "rank_fields", "modality", "priority", "skip_special_tokens"),
]
GOOD = st.sampled_from(
    [
        {"input": ["a", "b"]},
        {"inputs": ["a", "b"]},
        {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
        {"query": "a", "texts": ["b"]},
        {"query": "a", "documents": ["b", {"text": "c"}]},
        {"ids": [0, 5, 2]},
    ]
)
BODIES = st.builds(
    lambda good, bad: {**good, **bad},
    GOOD,
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3),
)


@calm
@given(path=st.sampled_from(PATHS), body=st.one_of(BODIES, VALUES))
def test_no_body_gives_a_5xx(api: Api, path, body):
    answer = api.post(path, json.dumps(body).encode())
    assert answer.status_code < 500, (path, body, answer.text)
    assert answer.headers["content-type"] == "application/json"
    json.loads(answer.content)


@calm
@given(path=st.sampled_from(PATHS), raw=st.binary(max_size=200))
def test_no_bytes_for_a_body_give_a_5xx(api: Api, path, raw):
    assert api.post(path, raw).status_code < 500


@calm
@given(
    name=st.sampled_from(
        [
            "X-Deadline-Ms",
            "X-Priority",
            "Authorization",
            "X-API-Key",
            "Content-Type",
            "X-Request-Id",
        ]
    ),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")),
)
def test_no_header_gives_a_defect(api: Api, name, value):
    with contextlib.suppress(httpx.LocalProtocolError):  # what the client itself refuses
        answer = api.post(
            "/embed", {"inputs": "a"}, headers={name: value.strip().encode("latin-1")}
        )
        assert answer.status_code != 500, answer.text


def test_schemathesis_finds_no_5xx(api: Api):
    schemathesis = need("schemathesis")
    schema = schemathesis.openapi.from_url(f"{api.url}/openapi.json")
    seen: set[tuple[str, int]] = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def asks(case: Any) -> None:
            answer = case.call()
            seen.add((case.operation.path, answer.status_code))
            assert answer.status_code < 500, (case.operation.path, case.body, answer.text)

        asks()
    answered = {path for path, status in seen if status == 200}
    assert {"/embed", "/v1/embeddings", "/rerank", "/v2/rerank", "/classify"} <= answered


# -- the socket -------------------------------------------------------------------------------

REQUEST = (
    b"POST /embed HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b'Content-Length: 14\r\n\r\n{"inputs":"a"}'
)
FRAGMENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            REQUEST,
            REQUEST[:40],
            REQUEST.replace(b"14", b"-1"),
            REQUEST.replace(b"14", b"99999999999999999999"),
            REQUEST.replace(b"14", b"0x10"),
            REQUEST.replace(b"Content-Length: 14", b"Transfer-Encoding: chunked"),
            b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /%ff%00 HTTP/1.1\r\nHost: \xff\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"X: " + b"y" * 70_000 + b"\r\n",
            b"5\r\nhello\r\nzz\r\n",
            b"\r\n\r\n",
        ]
    ),
)


def send(port: int, pieces: list[bytes], how: str) -> None:
    """Bytes on a connection of their own, which ends in one of three ways."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as wire,
        contextlib.suppress(OSError),
    ):
        for piece in pieces:
            wire.sendall(piece)
        if how == "reset":
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "half":
            wire.shutdown(socket.SHUT_WR)
            wire.settimeout(0.2)
            wire.recv(4096)


@calm
@given(
    pieces=st.lists(FRAGMENTS, min_size=1, max_size=4),
    how=st.sampled_from(["reset", "half", "close"]),
)
def test_no_bytes_on_the_socket_hurt_the_server(api: Api, pieces, how):
    send(api.port, pieces, how)


def test_after_the_bytes_the_server_answers_and_nothing_is_left_inside(api: Api):
    assert api.ok("/embed", {"inputs": "a"})
    assert all(lane.waiting == lane.running == 0 for lane in api.server.lanes)
    assert api.server.budget.taken == 0
    assert api.errors == []
