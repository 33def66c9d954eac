"""Operations: alive, ready, metrics. None of them goes through a lane."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tailrace.core.errors import TailraceError
from tailrace.serve.arrival import Receive, Scope, Send
from tailrace.serve.metrics import Metrics
from tailrace.serve.problems import json_answer, problem_answer

ALIVE = b'{"alive":true}'
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class NotReady(TailraceError):
    """The model has not answered yet."""

    code = "not-ready"


async def alive(scope: Scope, receive: Receive, send: Send) -> None:
    """/livez by the short way: nothing between a busy process and its word."""
    await Response(ALIVE, media_type="application/json")(scope, receive, send)


def ops_routes(metrics: Metrics, ready: Callable[[], tuple[bool, str]]) -> APIRouter:
    """/livez, /readyz, /metrics; `ready` says whether, and why not."""
    routes = APIRouter(tags=["operations"])

    @routes.get("/livez", summary="The process answers; says nothing of the model")
    async def livez(_: Request) -> Response:
        return Response(ALIVE, media_type="application/json")

    @routes.get("/readyz", summary="The model gave an answer lately and work is taken in")
    async def readyz(_: Request) -> Response:
        is_ready, why = ready()
        made = (
            json_answer({"ready": True})
            if is_ready
            else problem_answer(NotReady(why), back_s=(1, 1))
        )
        return Response(made.body, made.status, made.headers)

    @routes.get("/metrics", summary="Prometheus metrics")
    async def scrape(_: Request) -> Response:
        return Response(metrics.expose(), media_type=METRICS_TYPE)

    return routes
