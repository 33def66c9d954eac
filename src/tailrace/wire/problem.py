"""Problem details for HTTP APIs (RFC 9457): the body of every error."""

from typing import Any

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:tailrace:problem:"


def problem(code: str, status: int, title: str, detail: str, **more: Any) -> dict[str, Any]:
    """A problem body; `code` is the stable name of the error and the tail of its type."""
    return {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        **{name: value for name, value in more.items() if value is not None},
    }
