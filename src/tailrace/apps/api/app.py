"""The model server as an ASGI application: all dialects in one process."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException

from tailrace import __version__
from tailrace.apps.api.server import ApiServer
from tailrace.serve.arrival import App, Arrival
from tailrace.serve.dialect import Front
from tailrace.serve.dialects.cohere import Cohere
from tailrace.serve.dialects.infinity import Infinity
from tailrace.serve.dialects.jina import Jina
from tailrace.serve.dialects.openai import OpenAI
from tailrace.serve.dialects.shared import Shared
from tailrace.serve.dialects.tei import Tei
from tailrace.serve.ops import ops_routes
from tailrace.serve.problems import http_problem, unexpected_problem
from tailrace.serve.static import add_swagger

DIALECTS = (OpenAI, Tei, Cohere, Jina, Infinity, Shared)


def dialect_routes(front: Front) -> list[APIRouter]:
    """What every dialect answers."""
    return [dialect(front).router for dialect in DIALECTS]


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
    for router in dialect_routes(server.front):
        app.include_router(router)
    app.include_router(ops_routes(server.metrics, server.ready))
    add_swagger(app, "/docs")
    return Arrival(app, server.clock)
