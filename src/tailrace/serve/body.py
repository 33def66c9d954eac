"""Reading a request's body: bounded, JSON, and with errors that say what is wrong with it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from tailrace.core.errors import InputError
from tailrace.serve.arrival import Receive
from tailrace.serve.connection import WHOLE
from tailrace.serve.problems import BodyTimeout, InvalidJson, TooLarge, WrongContentType

BODY_S_MAX = 10.0
"""How long a caller may take to send a body."""


async def read_json(request: Request, bytes_max: int) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        WrongContentType, TooLarge, InvalidJson, InputError: each with a message for the caller.

    """
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        given = media_type or "none"
        raise WrongContentType(f"The content type must be application/json; it is {given}.")
    body = parse_json(await read_bytes(request, bytes_max))
    if not isinstance(body, dict):
        raise InputError('The body must be a JSON object such as {"text": "..."}.')
    return body


async def read_bytes(request: Request, bytes_max: int) -> bytes:
    """The raw body; raises TooLarge as soon as it is known, and BodyTimeout."""
    error = TooLarge(f"The body may have {bytes_max} bytes.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > bytes_max):
        raise error
    if WHOLE in request.scope:  # the usual case: there is nothing to wait for
        return await _pieces(request.receive, bytes_max, error)
    try:
        async with asyncio.timeout(BODY_S_MAX):
            return await _pieces(request.receive, bytes_max, error)
    except TimeoutError:
        raise BodyTimeout(f"The body did not come within {BODY_S_MAX:g} s.") from None


async def _pieces(receive: Receive, bytes_max: int, error: TooLarge) -> bytes:
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > bytes_max:
            raise error
        more = message.get("more_body", False)
    return b"".join(pieces)


def parse_json(raw: bytes) -> Any:
    """Any JSON value; raises InvalidJson with the place of the fault."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as fault:
        first = fault
    try:
        # orjson refuses escapes of lone surrogates, which JSON's grammar allows: let them in, so that
        # the field that holds one can be named.
        return json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidJson(f"The body is not JSON: {first}.") from first


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def text_field(body: Mapping[str, Any], name: str, chars_max: int) -> str:
    """A text that a model can read.

    Raises:
        InputError: missing, not a string, empty, too long, with NUL or a lone surrogate.

    """
    text = body.get(name)
    if not isinstance(text, str):
        missing = "is missing" if name not in body else f"must be a string, not {_kind(text)}"
        raise InputError(f"`{name}` {missing}.")
    if not text.strip():
        raise InputError(f"`{name}` is empty.")
    if len(text) > chars_max:
        raise InputError(f"`{name}` has {len(text)} characters; the limit is {chars_max}.")
    if "\0" in text:
        raise InputError(f"`{name}` has a NUL character at {text.index(chr(0))}.")
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise InputError(f"`{name}` has a lone surrogate at {fault.start}.") from fault
    return text


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")
