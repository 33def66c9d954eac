"""The book service as an ASGI application."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from tailrace import __version__
from tailrace.apps.books.routes import BooksRoutes
from tailrace.apps.books.server import BooksServer
from tailrace.serve.arrival import App, Arrival
from tailrace.serve.entries import Entries
from tailrace.serve.ops import alive, ops_routes
from tailrace.serve.problems import http_problem, unexpected_problem
from tailrace.serve.static import add_page, add_swagger


def books_app(server: BooksServer) -> App:
    """All routes over one server; leaving its lifespan drains."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with server.running():
            yield

    app = FastAPI(
        title="Tailrace books",
        summary="Hybrid search with an embedding model of one's own.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        exception_handlers={HTTPException: http_problem, Exception: unexpected_problem},
    )
    routes = BooksRoutes(server)
    app.include_router(ops_routes(server.metrics, server.ready))
    app.include_router(routes.router)
    add_swagger(app, "/api/docs")
    add_page(app, "tailrace.apps.books", "page", "/books")
    return Arrival(
        Entries(app, {("GET", "/livez"): alive, **routes.entries}),
        server.clock,
        ended=server.metrics.ended,
        tracer=server.tracer,
    )
