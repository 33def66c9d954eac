"""Who asks: API keys, compared in constant time. Knows no dialect and no door."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest as compare
from pathlib import Path

from starlette.requests import Request

from tailrace.core.errors import TailraceError
from tailrace.serve.settings import BadConfiguration
from tailrace.wire.headers import X_API_KEY

BEARER = "bearer "


class Unauthorized(TailraceError):
    """A valid API key is needed: Authorization: Bearer KEY."""

    code = "unauthorized"


class Keys:
    """Known keys and the names of their owners; with none, everybody may ask, told apart by address."""

    def __init__(self, owners: Mapping[str, str] | None = None) -> None:
        self._owners = [(_digest(key), name) for key, name in (owners or {}).items()]

    @classmethod
    def read(cls, file: Path | None) -> "Keys":
        """Keys from a file: one a line, `name:key` or a key alone; raises BadConfiguration."""
        if file is None:
            return cls()
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError as fault:
            raise BadConfiguration(
                [("keys.file", f"cannot read {file}: {fault.strerror}")]
            ) from fault
        owners: dict[str, str] = {}
        for number, line in enumerate((line.strip() for line in lines), 1):
            if line and not line.startswith("#"):
                name, colon, key = line.partition(":")
                owners[key if colon else name] = name if colon else f"key-{number}"
        if not owners:
            raise BadConfiguration([("keys.file", f"{file} has no key")])
        return cls(owners)

    def caller(self, request: Request) -> str:
        """The name of who asks; raises Unauthorized."""
        given = _given(request)
        if not self._owners:
            return given or (request.client.host if request.client else "")
        digest = _digest(given)
        found = [name for known, name in self._owners if compare(known, digest)]
        if not found:
            raise Unauthorized
        return found[0]


def _given(request: Request) -> str:
    """The key of a request: a bearer token, a bare Authorization value, or X-API-Key."""
    authorization = request.headers.get("authorization", "").strip()
    if authorization.lower().startswith(BEARER):
        return authorization[len(BEARER) :].strip()
    return authorization or request.headers.get(X_API_KEY, "")


def _digest(key: str) -> bytes:
    """Keys are compared by digest, so that neither length nor content shows in the time taken."""
    return sha256(key.encode()).digest()
