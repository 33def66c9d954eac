"""An HTTP client for one upstream: bounded connections, stages as marks, typed errors, a key unseen.

Speaks JSON over HTTP/1.1 by httpcore2, which tells what it is about; knows no shape of any API. The key
is read from the environment for each request and kept nowhere.
"""

import email.utils
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from tailrace.core.work import StagedRun
from tailrace.models.dial import Dial, proxy_for
from tailrace.models.errors import ModelUnavailable
from tailrace.models.stages import Stages, Timeouts
from tailrace.models.upstream_errors import (
    UpstreamBusy,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamRefused,
)
from tailrace.wire.tracing import PASSED_ON

ANSWER_BYTES_MAX = 64 << 20
"""The largest answer that is read whole."""
SAID_CHARS_MAX = 300
"""How much of an upstream's own words an error repeats."""
PAUSE_S = 1.0
"""The pause after a refusal that names none."""
PAUSE_S_MAX = 600.0
"""The longest pause an upstream is believed."""
UNUSABLE = {400, 404, 409, 413, 415, 422}
"""Statuses that speak of the request, not of the upstream."""

HUNG_UP_S_MAX = 1.0
"""An old connection that breaks later than this after the request was given up with work on it."""

STARTS = {
    "connection.start_tls.started": "tls",
    "http11.send_request_headers.started": "send",
    "http11.receive_response_headers.started": "first-byte",
}
"""What the library reports, and which stage it begins."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request: its headers (names in lower case) and its pieces as they come."""

    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


class Upstream:
    """One base URL; at most `connections` at once, those idle longer than `idle_s` are closed."""

    def __init__(
        self,
        url: str,
        *,
        key_env: str | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 64,
        idle_s: float = 4.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._key_env = key_env
        self._timeouts = timeouts or Timeouts()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=idle_s,
            network_backend=Dial(),
            proxy=proxy_for(url),
        )
        self._headers()

    async def close(self) -> None:
        """Let go of all connections."""
        await self._pool.aclose()

    async def ask(self, path: str, body: bytes, run: StagedRun) -> tuple[Mapping[str, str], bytes]:
        """Headers and body of a whole answer; raises as `open`."""
        async with self.open(path, body, run) as reply:
            return reply.headers, await _whole(reply.pieces)

    @asynccontextmanager
    async def open(self, path: str, body: bytes, run: StagedRun) -> AsyncIterator[Reply]:
        """An answer of status 200 to POST `path`; on leaving, the rest of it is given up.

        Raises:
            UpstreamBusy: it refused, and says for how long.
            UpstreamRefused: it cannot use the request.
            UpstreamTimeout: a stage took too long.
            UpstreamFailed: anything else: no connection, a bad status, an answer broken off.

        """
        stages = Stages(run, self._timeouts)
        passed_on = PASSED_ON.get({}).items()
        headers = [*self._headers(), ("Content-Length", str(len(body))), *passed_on]
        async with stages:
            with _translated(self):
                response = await self._send(path, headers, body, stages)
                try:
                    answered = _decoded(response.headers)
                    async with aclosing(_pieces(self, response, stages)) as pieces:
                        if response.status != 200:
                            raise self._error(response.status, answered, await _words(pieces))
                        yield Reply(answered, pieces)
                finally:
                    await response.aclose()

    async def _send(
        self, path: str, headers: list[tuple[str, str]], body: bytes, stages: Stages
    ) -> httpcore2.Response:
        """The answer's head; once more where the upstream had hung up while the connection was idle."""
        while True:
            request = httpcore2.Request(
                "POST",
                self.url + path,
                headers=headers,
                content=body,
                extensions={"trace": _tracer(stages)},
            )
            stages.fresh = False
            began = time.monotonic()
            try:
                return await self._pool.handle_async_request(request)
            except (httpcore2.NetworkError, httpcore2.RemoteProtocolError):
                at_once = time.monotonic() - began < HUNG_UP_S_MAX
                if stages.again or stages.fresh or stages.heard or not at_once:
                    raise
                stages.again = True

    def _headers(self) -> list[tuple[str, str]]:
        headers = [
            ("Host", urlsplit(self.url).netloc),
            ("Content-Type", "application/json"),
            ("Accept", "*/*"),
            ("User-Agent", "tailrace"),
        ]
        if self._key_env is not None:
            headers.append(("Authorization", f"Bearer {self._key()}"))
        return headers

    def _key(self) -> str:
        key = os.environ.get(self._key_env or "", "").strip()
        if not key or not key.isascii() or not key.isprintable():
            state = "is not set" if not key else "holds no key that can be sent"
            raise ModelUnavailable(f"the environment variable {self._key_env} {state}")
        return key

    def unseen(self, text: str) -> str:
        """`text` without our key in it."""
        return text.replace(self._key(), "***") if self._key_env is not None else text

    def _error(self, status: int, headers: Mapping[str, str], said: str) -> Exception:
        said = self.unseen(said)[:SAID_CHARS_MAX].strip()
        words = f" It says: {said}" if said else ""
        if status == 429 or (status == 503 and "retry-after" in headers):
            pause_s = _pause_s(headers)
            return UpstreamBusy(f"The upstream refused ({status}).{words}", pause_s=pause_s)
        if status in {401, 403}:
            # What it says may repeat parts of the key.
            return UpstreamDenied(f"The upstream does not accept our key ({status}).")
        if status in UNUSABLE:
            return UpstreamRefused(f"The upstream cannot use the request ({status}).{words}")
        return UpstreamFailed(f"The upstream answered with status {status}.{words}")


class _translated:  # noqa: N801 - reads as a clause
    """The library's errors as ours, without a word about what was sent."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, httpcore2.ConnectError):
            raise UpstreamFailed(f"The upstream cannot be reached: {error}") from None
        if isinstance(
            error, httpcore2.NetworkError | httpcore2.ProtocolError | httpcore2.TimeoutException
        ):
            what = self._upstream.unseen(str(error)) or type(error).__name__
            raise UpstreamFailed(f"The upstream broke off: {what}") from None


def _tracer(stages: Stages) -> Any:
    async def trace(name: str, info: Mapping[str, Any]) -> None:
        del info
        if stage := STARTS.get(name):
            stages.begin(stage)

    return trace


async def _pieces(
    upstream: Upstream, response: httpcore2.Response, stages: Stages
) -> AsyncGenerator[bytes]:
    """The body as it comes; the caller's own time between two pieces is not the upstream's."""
    with _translated(upstream):
        async for piece in response.aiter_stream():
            stages.begin("transfer")
            stages.waiting_for_caller()
            yield piece
            stages.moved()


async def _whole(pieces: AsyncIterator[bytes], most: int = ANSWER_BYTES_MAX) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most:
            raise UpstreamFailed(f"The upstream's answer is larger than {most} bytes.")
    return bytes(body)


async def _words(pieces: AsyncIterator[bytes]) -> str:
    """The beginning of an error's body, as text."""
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) >= 4 * SAID_CHARS_MAX:
            break
    return " ".join(body.decode("utf-8", "replace").split())


def _pause_s(headers: Mapping[str, str]) -> float:
    """How long it asks us to stay away: retry-after-ms, or Retry-After in seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            asked = float(headers["retry-after-ms"]) / 1000
        else:
            asked = float(headers.get("retry-after", PAUSE_S))
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(headers["retry-after"])
            asked = moment.timestamp() - time.time()
        except (ValueError, KeyError):
            asked = PAUSE_S
    return min(max(0.0, asked), PAUSE_S_MAX) if asked == asked else PAUSE_S  # noqa: PLR0124 - NaN


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
