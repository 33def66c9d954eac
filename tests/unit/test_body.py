"""What a body may be, and what is said about one that may not."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.requests import Request

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.body import parse_json, read_json, text_field
from tailrace.serve.problems import STATUS, InvalidJson, TooLarge, WrongContentType

LIMIT = 10_000


def request(
    pieces: Iterable[bytes], content_type: str | None = "application/json", **headers: str
) -> Request:
    raw = [(name.replace("_", "-").encode(), v.encode("latin-1")) for name, v in headers.items()]
    if content_type is not None:
        raw.append((b"content-type", content_type.encode("latin-1")))
    left = list(pieces)

    async def receive() -> dict[str, Any]:
        piece = left.pop(0) if left else b""
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": raw}
    return Request(scope, receive)


def read(body: bytes, **more: Any) -> dict[str, Any]:
    return asyncio.run(read_json(request([body], **more), LIMIT))


def fault(body: bytes, chars_max: int = 2000, **more: Any) -> TailraceError:
    with pytest.raises(TailraceError) as caught:
        text_field(read(body, **more), "text", chars_max)
    return caught.value


def text(value: Any) -> bytes:
    return json.dumps({"text": value}, ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "multipart/form-data; x=y"])
def test_other_content_types_are_named_in_the_answer(content_type: str | None) -> None:
    error = fault(text("x"), content_type=content_type)
    assert type(error) is WrongContentType
    assert (content_type or "none").split(";")[0] in str(error)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "APPLICATION/JSON; charset=utf-8", "application/vnd.x+json"],
)
def test_json_by_any_of_its_names_is_read(content_type: str) -> None:
    assert read(text("좋아요"), content_type=content_type) == {"text": "좋아요"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"{'text': 'x'}",
        b'{"text": "x"',
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": -Infinity}',
        b'{"text": "\xff\xfe"}',
        b"\x00",
        b'{"text": "a\nb"}',
        b'{"text": 01}',
        b"[" * 5000,
        b'{"a":' * 1600,
        b'{"n": ' + b"9" * 5000 + b"x}",
        b'{"text": "x"} {"text": "y"}',
    ],
    ids=lambda body: repr(body[:16]),
)
def test_what_is_not_json_is_answered_as_such(body: bytes) -> None:
    error = fault(body)
    assert type(error) is InvalidJson
    assert STATUS[error.code][0] == 400


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"3", b"null", b"true", b"1" * 400])
def test_json_that_is_no_object_is_answered_with_an_example(body: bytes) -> None:
    error = fault(body)
    assert STATUS[error.code][0] == 422
    assert '{"text": "..."}' in str(error)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{}", "`text` is missing"),
        (b'{"Text": "x"}', "`text` is missing"),
        (text(None), "must be a string, not null"),
        (text(3), "must be a string, not a number"),
        (text(3.5), "must be a string, not a number"),
        (text(10**400), "must be a string, not a number"),
        (text(True), "must be a string, not a boolean"),
        (text(["x"]), "must be a string, not an array"),
        (text({"x": 1}), "must be a string, not an object"),
        (text(""), "is empty"),
        (text(" \t\n\u3000\u00a0"), "is empty"),
        (text("x" * 2001), "has 2001 characters; the limit is 2000"),
        (text("a\0b"), "has a NUL character at 1"),
        (b'{"text": "ab\\ud800"}', "has a lone surrogate at 2"),
        (b'{"text": "\\udc00\\ud800"}', "has a lone surrogate at 0"),
    ],
)
def test_a_text_that_cannot_be_read_is_answered_with_what_is_wrong(body: bytes, says: str) -> None:
    error = fault(body)
    assert isinstance(error, InputError)
    assert STATUS[error.code][0] == 422
    assert says in str(error)


def test_a_hundred_thousand_characters_are_told_the_limit() -> None:
    body = {"text": "가" * 100_000}
    with pytest.raises(InputError, match="has 100000 characters; the limit is 2000"):
        text_field(body, "text", 2000)


@pytest.mark.parametrize(
    "good",
    ["x" * 2000, "👩\u200d👩\u200d👧", "e\u0301", "\ufeffbom", "a\u200bb", "\x01\x7f", "٣"],
)
def test_any_other_text_is_let_through_unchanged(good: str) -> None:
    assert text_field(read(text(good)), "text", 2000) == good


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert text_field(read(b'{"text": "\\ud83d\\ude00"}'), "text", 1) == "😀"


def test_a_body_is_refused_as_soon_as_its_declared_size_is_too_large() -> None:
    asked: list[int] = []

    async def receive() -> dict[str, Any]:
        asked.append(1)
        return {"type": "http.request", "body": b"", "more_body": False}

    length = str(LIMIT + 1).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    with pytest.raises(TooLarge, match=f"may have {LIMIT} bytes"):
        asyncio.run(read_json(Request(scope, receive), LIMIT))
    assert asked == []


def test_a_body_that_hides_its_size_is_refused_once_it_is_too_large() -> None:
    pieces = [b" " * 1000 for _ in range(1000)]
    made = request(pieces)
    with pytest.raises(TooLarge):
        asyncio.run(read_json(made, LIMIT))


@pytest.mark.parametrize("declared", ["²", "-5", "1e3", "9" * 5000])
def test_a_declared_size_that_is_no_number_is_passed_over_or_refused_but_never_fatal(
    declared: str,
) -> None:
    made = request([text("x")], content_length=declared)
    try:
        assert asyncio.run(read_json(made, LIMIT)) == {"text": "x"}
    except TooLarge:
        assert declared.startswith("9")


def test_numbers_beyond_any_use_do_not_stop_the_parser() -> None:
    with pytest.raises(InvalidJson):
        parse_json(b"-" + b"9" * 5000 + b" x")
