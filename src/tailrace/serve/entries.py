"""The short way in: an entry found by method and path alone, before any framework has had its say.

A framework's routing, middleware and dependency injection cost more than a request's whole queue. The
entries are declared to FastAPI too, for the OpenAPI file and for everything that is not found here.
"""

from collections.abc import Mapping

from tailrace.serve.arrival import App, Receive, Scope, Send

Table = Mapping[tuple[str, str], App]
"""Entries by method and path."""


class Entries:
    """Wraps an ASGI application; what is in the table never reaches it."""

    def __init__(self, app: App, table: Table) -> None:
        self._app = app
        self._table = dict(table)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        entry = self._app
        if scope["type"] == "http":
            entry = self._table.get((scope["method"], scope["path"]), entry)
        await entry(scope, receive, send)
