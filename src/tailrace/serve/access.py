"""Request ids, and a line of JSON for every answer. Never a text, a query string or a key."""

import logging
import os
import re
from collections.abc import Iterable
from typing import Any

import orjson

from tailrace.wire.headers import X_REQUEST_ID

log = logging.getLogger("tailrace.access")

NAME = X_REQUEST_ID.lower().encode()
GIVEN = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}\Z")
"""Ids that are taken over; others could break a log or a header."""


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The caller's id of a request, or a new one."""
    for name, value in headers:
        if name == NAME and GIVEN.match(value):
            return value
    return os.urandom(8).hex().encode()


def write_access(*, to_stderr: bool) -> None:
    """Switch the log of answers on, as lines of JSON on standard error, or off."""
    log.propagate = False
    log.setLevel(logging.INFO if to_stderr else logging.CRITICAL)
    if to_stderr and not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)


def wanted() -> bool:
    """Whether anybody reads the log of answers."""
    return log.isEnabledFor(logging.INFO)


def note(scope: Any, identity: bytes, status: int, seconds: float, timing: str) -> None:
    """Write one answer down."""
    client = scope.get("client")
    entry = {
        "id": identity.decode(),
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(seconds * 1000, 3),
        "client": client[0] if client else None,
        "timing": timing,
    }
    log.info("%s", orjson.dumps(entry).decode())
