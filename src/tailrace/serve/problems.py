"""Errors to problem details: the one table that gives codes a status.

The core's errors know no HTTP; nothing else in the house decides on a status.
"""

from dataclasses import dataclass
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tailrace.core.errors import InputError, TailraceError
from tailrace.wire.headers import retry_after
from tailrace.wire.problem import MEDIA_TYPE, problem

STATUS: dict[str, tuple[int, str]] = {
    "invalid-input": (422, "The input cannot be used"),
    "too-many-items": (422, "Too many items"),
    "empty-input": (422, "There is nothing to do"),
    "not-offered": (422, "The model cannot do this"),
    "invalid-json": (400, "The body is not JSON"),
    "wrong-content-type": (415, "The content type is not JSON"),
    "wrong-picture-type": (415, "The body is no picture that is read here"),
    "bad-picture": (422, "The picture cannot be read"),
    "picture-too-large": (413, "The picture has too many pixels"),
    "covers-unavailable": (501, "Covers cannot be read here"),
    "body-timeout": (408, "The body did not come in time"),
    "too-large": (413, "The body is too large"),
    "rate-limited": (429, "Too many requests from this caller"),
    "lane-full": (429, "The line is full"),
    "deadline-infeasible": (503, "The deadline cannot be met"),
    "memory-pressure": (503, "Short of memory"),
    "draining": (503, "Shutting down"),
    "model-hangs": (503, "The model hangs"),
    "queue-timeout": (503, "Waited too long"),
    "model-timeout": (504, "The model ran past the deadline"),
    "model-failed": (500, "The model failed"),
    "model-died": (502, "The model's process was killed"),
    "model-restarting": (502, "The model's process is starting again"),
    "model-unavailable": (503, "The model is not there"),
    "not-ready": (503, "Not ready yet"),
    "model-busy": (429, "The model asks for a pause"),
    "upstream-failed": (502, "The upstream failed"),
    "upstream-timeout": (504, "The upstream took too long"),
    "upstream-busy": (429, "The upstream refused"),
    "upstream-paused": (429, "The upstream asked for a pause"),
    "upstream-refused": (422, "The upstream cannot use the request"),
    "llm-truncated": (502, "The language model was cut off"),
    "turn-timeout": (504, "The turn took too long"),
    "bad-output": (500, "The model gave no usable answer"),
    "unknown-model": (404, "No such model"),
    "wrong-kind": (400, "The model is of another kind"),
    "unauthorized": (401, "No valid key"),
    "door-closed": (404, "The door is switched off"),
    "store-failed": (500, "The store failed"),
    "store-unavailable": (503, "The store does not answer"),
    "store-too-new": (503, "The store was written by a newer version"),
    "store-foreign": (503, "The store is something else's"),
    "analyzer-mismatch": (503, "The keyword index is of another analyser"),
    "space-mismatch": (409, "The vectors are of another space"),
    "canary-mismatch": (409, "The model gives other vectors than the store holds"),
    "unknown-space": (404, "No such space"),
    "space-in-use": (409, "The space is in use"),
    "unknown-category": (422, "No such category"),
    "unknown-document": (404, "No such document"),
    "bad-document": (422, "The document cannot be kept"),
    "bad-vectors": (422, "The vectors cannot be used"),
    "ticket-unknown": (404, "No such ticket"),
    "ticket-expired": (410, "The ticket's result is gone"),
}
INTERNAL = (500, "Something went wrong inside")


class InvalidJson(InputError):
    """The body is not JSON."""

    code = "invalid-json"


class WrongContentType(InputError):
    """The content type must be application/json."""

    code = "wrong-content-type"


class BodyTimeout(InputError):
    """The body did not come in time."""

    code = "body-timeout"


class TooLarge(InputError):
    """The body is too large."""

    code = "too-large"


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: status, body and headers, not yet stamped."""

    status: int
    body: bytes
    headers: dict[str, str]

    def response(self, headers: dict[str, str]) -> Response:
        """What is sent, with the headers as they are by then."""
        return Response(self.body, self.status, headers)


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A JSON answer; numpy arrays serialise as they are, NaN never leaves as JSON."""
    encoded = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    return Answer(status, encoded, {"Content-Type": "application/json", **(headers or {})})


def problem_answer(
    error: TailraceError, *, door: str | None = None, back_s: tuple[float, float] | None = None
) -> Answer:
    """The problem body for an error.

    `back_s` are the seconds until the caller should return: by the whole second, and exactly; by
    default what the error itself knows.
    """
    back_s = back_s or error.back_s
    status, title = STATUS.get(error.code, INTERNAL)
    headers = {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"}
    after = None
    if back_s is not None:
        headers |= retry_after(back_s[0], back_s[1] * 1000)
        after = int(headers["Retry-After"])
    if error.code == "draining":
        headers["Connection"] = "close"  # the next request of this client may find another server
    detail = str(error) if error.code in STATUS else "Look at the log of the box."
    detail = detail.encode("utf-8", "replace").decode()  # it may quote what cannot be sent
    body = problem(error.code, status, title, detail, door=door, retry_after_s=after)
    return Answer(status, orjson.dumps(body), headers)


async def http_problem(_: Request, error: Exception) -> Response:
    """Unknown paths, wrong methods and what else the framework itself refuses."""
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "http-error")
    detail = {
        404: "There is nothing at this path; /api/docs lists what there is.",
        405: "This path knows other methods; the Allow header names them.",
    }.get(error.status_code, str(error.detail))
    body = problem(code, error.status_code, str(error.detail), detail)
    headers = dict(error.headers or {})
    return Response(orjson.dumps(body), error.status_code, headers, media_type=MEDIA_TYPE)


async def unexpected_problem(_: Request, __: Exception) -> Response:
    """A defect of ours, met by the framework."""
    return internal()


def internal() -> Response:
    """The answer for a defect of ours: it says nothing of the inside."""
    status, title = INTERNAL
    body = problem("internal", status, title, "Look at the log of the box.")
    return Response(orjson.dumps(body), status, media_type=MEDIA_TYPE)
