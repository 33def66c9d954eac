"""The outermost layer, pure ASGI: stamps the arrival, and sees that every answer says how long it took.

Answers that a lane gave carry their own parts already; all others get the one part `handle`. It also
adds the headers that every answer has. BaseHTTPMiddleware is not used: it hides that a caller hung up.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

import orjson
from starlette.responses import Response

from tailrace.core.clock import Clock
from tailrace.serve import access
from tailrace.serve.account import ACCOUNT, Account
from tailrace.serve.tracer import Tracer
from tailrace.wire.headers import SERVER_TIMING, server_timing
from tailrace.wire.problem import MEDIA_TYPE, problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ARRIVED = "tailrace.arrived"
HEADER_BYTES_MAX = 32 << 10
"""The most bytes in a request's headers."""
TIMING = SERVER_TIMING.lower().encode()

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def encode(headers: Mapping[str, str]) -> Iterable[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


class Arrival:
    """Wraps an ASGI application."""

    def __init__(
        self,
        app: App,
        clock: Clock,
        *,
        ended: Callable[[Account], None] = lambda _: None,
        tracer: Tracer | None = None,
    ) -> None:
        """`ended` is told of every request when it is over, `tracer` makes spans of them."""
        self._app = app
        self._clock = clock
        self._ended = ended
        self._tracer = tracer
        self._always = list(encode(SECURITY_HEADERS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = scope[ARRIVED] = self._clock.now()
        account = scope[ACCOUNT] = Account()
        if self._tracer is not None:
            self._tracer.begin(scope, account)
        app = self._app
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES_MAX:
            app = _too_large
        identity = access.request_id(scope["headers"])
        status, timing = 499, b""

        async def stamped(message: Message) -> None:
            nonlocal status, timing
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *self._always, (access.NAME, identity)]
                status = message["status"]
                timing = next((value for name, value in headers if name == TIMING), b"")
                if not timing:
                    timing = server_timing({"handle": self._clock.now() - arrived}).encode()
                    headers.append((TIMING, timing))
                message = {**message, "headers": headers}
            await send(message)

        try:
            await app(scope, receive, stamped)
        finally:
            account.status = status
            self._ended(account)
            if self._tracer is not None:
                self._tracer.end(scope, account, self._clock.now() - arrived)
            if access.wanted():
                took = self._clock.now() - arrived
                access.note(scope, identity, status, took, timing.decode())


async def _too_large(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a request whose headers alone are too much."""
    detail = f"The headers may have {HEADER_BYTES_MAX} bytes."
    body = problem("headers-too-large", 431, "The headers are too large", detail)
    await Response(orjson.dumps(body), 431, media_type=MEDIA_TYPE)(scope, receive, send)
