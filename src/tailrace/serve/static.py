"""Files that ship with the package, served as they are: pages and the API's documentation."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

FRESH = {"Cache-Control": "no-cache"}


def shipped(package: str, folder: str) -> Path:
    """A folder inside an installed package."""
    return Path(str(files(package).joinpath(folder)))


def _whole(scope: Scope) -> None:
    """Pass over a wish for a part of a file, as a server may: these files are small."""
    scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"range"]


class WholeFiles(StaticFiles):
    """Files of a folder, sent whole or not at all; a browser that has one asks whether it has changed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        _whole(scope)
        await super().__call__(scope, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """See StaticFiles; half of a page from before an upgrade would not fit the other half."""
        response = await super().get_response(path, scope)
        response.headers.update(FRESH)
        return response


def add_swagger(app: FastAPI, path: str) -> None:
    """Swagger UI at `path`, from files of our own: no request leaves the box."""
    folder = shipped("tailrace.serve", "swagger")

    async def page(request: Request) -> Response:
        _whole(request.scope)
        return FileResponse(folder / "index.html")

    app.add_route(path, page, include_in_schema=False)
    app.mount(path, WholeFiles(directory=folder))


def add_page(app: FastAPI, package: str, folder: str, path: str = "/") -> None:
    """A page at `path`, its files below /page/ and those of every page below /page/shared/.

    `/` leads to a page that is elsewhere. The browser asks each time whether something has changed.
    """
    place = shipped(package, folder)

    async def page(request: Request) -> Response:
        _whole(request.scope)
        return FileResponse(place / "index.html", headers=FRESH)

    async def there(_: Request) -> Response:
        return RedirectResponse(path.removeprefix("/"))

    app.add_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
    if path != "/":
        app.add_route("/", there, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/page/shared", WholeFiles(directory=shipped("tailrace.serve", "page")))
    app.mount("/page", WholeFiles(directory=place))
