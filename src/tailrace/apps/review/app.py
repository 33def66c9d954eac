"""The review box as an ASGI application."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tailrace import __version__
from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.crowd import crowd_routes
from tailrace.apps.review.routes import ReviewRoutes
from tailrace.apps.review.snapshot import snapshot
from tailrace.serve.arrival import App, Arrival
from tailrace.serve.entries import Entries
from tailrace.serve.events_stream import EventStream
from tailrace.serve.ops import alive, ops_routes
from tailrace.serve.problems import http_problem, unexpected_problem
from tailrace.serve.static import add_page, add_swagger


def event_stream(box: ReviewBox) -> EventStream:
    """The stream of the box's present, which must be closed before the server waits for its callers."""
    return EventStream(lambda: snapshot(box), box.clock, box.settings.server.streams_max)


def review_app(box: ReviewBox, stream: EventStream) -> App:
    """All routes over one box; entering its lifespan starts the box, leaving it drains."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with box.running():
            yield

    app = FastAPI(
        title="Tailrace review box",
        summary="One slow model, four doors.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        exception_handlers={HTTPException: http_problem, Exception: unexpected_problem},
    )
    routes = ReviewRoutes(box)
    app.include_router(routes.router)
    app.include_router(crowd_routes(box))
    app.include_router(ops_routes(box.metrics, box.ready))

    async def events(request: Request) -> Response:
        return stream.respond(request)

    app.add_api_route("/api/events", events, summary="The same as /api/stats, as events")
    add_swagger(app, "/api/docs")
    add_page(app, "tailrace.apps.review", "page")
    return Arrival(
        Entries(app, {("GET", "/livez"): alive, **routes.entries}),
        box.clock,
        ended=box.metrics.ended,
        tracer=box.tracer,
    )
