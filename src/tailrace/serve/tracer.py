"""Makes a span of every request, with one for each of its parts: those that Server-Timing names.

Stands at the outermost layer; knows neither the library that sends them nor any door.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from tailrace.serve.account import Account
from tailrace.serve.metrics import Metrics
from tailrace.serve.settings import BadConfiguration
from tailrace.wire.tracing import (
    DOOR,
    ERROR_TYPE,
    HTTP_METHOD,
    HTTP_ROUTE,
    HTTP_STATUS,
    LANE,
    OUTCOME,
    PASSED_ON,
    URL_PATH,
    Choice,
    Finished,
    Piece,
    Tracing,
    TracingUnavailable,
    Value,
    open_tracing,
)

CARRIERS = {b"traceparent": "traceparent", b"tracestate": "tracestate"}
UNSEEN = {"/livez", "/readyz", "/metrics"}
"""What machines ask every few seconds: no spans of it."""


def open_tracer(choice: Choice, service: str, metrics: Metrics) -> "Tracer | None":
    """What makes spans, or None where nobody asked for them.

    Raises:
        BadConfiguration: the configuration asks for them and they cannot be made.

    """
    try:
        tracing = open_tracing(choice, service)
    except TracingUnavailable as error:
        raise BadConfiguration([("tracing.endpoint", str(error))]) from None
    tracer = None if tracing is None else Tracer(tracing)
    metrics.gauge(
        "traces_lost",
        "Requests whose spans were dropped or not taken by the collector",
        (),
        lambda: {(): float(tracer.lost() if tracer else 0)},
    )
    return tracer


class Tracer:
    """Begins a span when a request arrives and ends it when its answer, or its caller, is gone."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self.lost = tracing.lost

    async def close(self) -> None:
        """Send what waits, for a bounded time; the loop goes on meanwhile."""
        await asyncio.to_thread(self._tracing.close)

    def begin(self, scope: Mapping[str, Any], account: Account) -> None:
        """Take up the caller's trace, or begin one; what is asked upstream from here on belongs to it."""
        if scope["path"] in UNSEEN:
            return
        account.arrived_ns = time.time_ns()
        headers = {
            CARRIERS[name]: value.decode("latin-1")
            for name, value in scope["headers"]
            if name in CARRIERS
        }
        begun = self._tracing.begin(headers)
        PASSED_ON.set(begun.headers)
        if begun.sampled:
            account.begun = begun

    def end(self, scope: Mapping[str, Any], account: Account, seconds: float) -> None:
        """Hand the span over; `seconds` is the whole where no endpoint divided it."""
        if account.begun is None:
            return
        parts = {"handle": seconds} if account.stamps is None else account.stamps.parts()
        route = _route(scope, account)
        finished = Finished(
            f"{scope['method']} {route}" if route else scope["method"],
            account.arrived_ns,
            [Piece(name, took) for name, took in parts.items()],
            _about(scope, account, route),
            failed=account.status >= 500 or (account.status < 400 and bool(account.error)),
        )
        self._tracing.end(account.begun, finished)

    def worked(self, name: str, account: Account) -> None:
        """Hand over the span of work that was done after its request was answered, and ends now."""
        begun = self._tracing.begin(PASSED_ON.get({}))
        if account.stamps is None or not begun.sampled:
            return
        took_ns = round(account.stamps.total * 1e9)
        parts = [Piece(part, seconds) for part, seconds in account.stamps.parts().items()]
        about: dict[str, Value] = {DOOR: account.door, LANE: account.lane}
        about[OUTCOME] = "failed" if account.error else "done"
        if account.error:
            about[ERROR_TYPE] = account.error
        began_ns = time.time_ns() - took_ns
        failed = bool(account.error)
        finished = Finished(name, began_ns, parts, about, failed=failed, side="worker")
        self._tracing.end(begun, finished)


def _route(scope: Mapping[str, Any], account: Account) -> str:
    """The entry as it is declared; empty for a path that nobody serves, of which there are endless many."""
    declared: str | None = getattr(scope.get("route"), "path", None)
    if declared is not None:
        return declared
    return scope["path"] if account.stamps is not None else ""


def _about(scope: Mapping[str, Any], account: Account, route: str) -> dict[str, Value]:
    told: dict[str, Value] = {
        HTTP_METHOD: scope["method"],
        URL_PATH: scope["path"],
        HTTP_STATUS: account.status,
        OUTCOME: account.outcome,
        **account.about,
    }
    where = {HTTP_ROUTE: route, DOOR: account.door, LANE: account.lane}
    told |= {name: value for name, value in where.items() if value}
    if account.error or account.status >= 500:
        told[ERROR_TYPE] = account.error or str(account.status)
    return told
