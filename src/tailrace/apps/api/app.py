"""The model server as an ASGI application: all dialects in one process."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from tailrace import __version__
from tailrace.apps.api.server import ApiServer
from tailrace.serve.arrival import App, Arrival
from tailrace.serve.dialects.openai import OpenAI
from tailrace.serve.dialects.openai_chat import OpenAIChat
from tailrace.serve.ops import ops_routes
from tailrace.serve.problems import http_problem, unexpected_problem
from tailrace.serve.static import add_swagger

DIALECTS = (OpenAI, OpenAIChat)


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
    for dialect in DIALECTS:
        app.include_router(dialect(server.front).router)
    app.include_router(ops_routes(server.metrics, server.ready))
    add_swagger(app, "/docs")
    return Arrival(app, server.clock)
