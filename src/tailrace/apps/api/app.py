"""The model server as an ASGI application: all dialects in one process."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from tailrace import __version__
from tailrace.apps.api.server import ApiServer
from tailrace.serve.arrival import App, Arrival
from tailrace.serve.dialect import Dialect, Front
from tailrace.serve.dialects.cohere import Cohere
from tailrace.serve.dialects.infinity import Infinity
from tailrace.serve.dialects.jina import Jina
from tailrace.serve.dialects.openai import OpenAI
from tailrace.serve.dialects.openai_chat import OpenAIChat
from tailrace.serve.dialects.shared import Shared
from tailrace.serve.dialects.tei import Tei
from tailrace.serve.entries import Entries
from tailrace.serve.ops import alive, ops_routes
from tailrace.serve.problems import http_problem, unexpected_problem
from tailrace.serve.static import add_swagger

DIALECTS = (OpenAI, OpenAIChat, Tei, Cohere, Jina, Infinity, Shared)


def dialects(front: Front) -> list[Dialect]:
    """All dialects; no two claim the same path."""
    return [dialect(front) for dialect in DIALECTS]


def api_app(server: ApiServer) -> App:
    """All routes over one server; leaving its lifespan drains."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with server.running():
            yield

    app = FastAPI(
        title="Tailrace model server",
        summary="Embeddings and reranking that stay honest when the crowd comes.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers={HTTPException: http_problem, Exception: unexpected_problem},
    )
    entries: dict[tuple[str, str], App] = {("GET", "/livez"): alive}
    for dialect in dialects(server.front):
        app.include_router(dialect.router)
        entries |= dialect.entries
    app.include_router(ops_routes(server.metrics, server.ready))
    add_swagger(app, "/docs")
    inner: App = Entries(app, entries)
    if origins := server.settings.server.cors_origins:
        inner = CORSMiddleware(
            inner,
            allow_origins=origins,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            expose_headers=("*",),
        )
    return Arrival(inner, server.clock, ended=server.metrics.ended, tracer=server.tracer)
