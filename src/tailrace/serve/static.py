"""Files that ship with the package, served as they are: pages and the API's documentation."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send


def shipped(package: str, folder: str) -> Path:
    """A folder inside an installed package."""
    return Path(str(files(package).joinpath(folder)))


def _whole(scope: Scope) -> None:
    """Pass over a wish for a part of a file, as a server may: these files are small."""
    scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"range"]


class WholeFiles(StaticFiles):
    """Files of a folder, sent whole or not at all."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        _whole(scope)
        await super().__call__(scope, receive, send)


def add_swagger(app: FastAPI, path: str) -> None:
    """Swagger UI at `path`, from files of our own: no request leaves the box."""
    folder = shipped("tailrace.serve", "swagger")

    async def page(request: Request) -> Response:
        _whole(request.scope)
        return FileResponse(folder / "index.html")

    app.add_route(path, page, include_in_schema=False)
    app.mount(path, WholeFiles(directory=folder))


def add_page(app: FastAPI, package: str, folder: str) -> None:
    """A page at `/`, its files below /page/; the browser asks each time whether they changed."""
    place = shipped(package, folder)

    async def page(request: Request) -> Response:
        _whole(request.scope)
        return FileResponse(place / "index.html", headers={"Cache-Control": "no-cache"})

    app.add_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/page", WholeFiles(directory=place))
