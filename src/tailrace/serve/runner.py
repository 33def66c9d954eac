"""Listens on a port and serves an application until it is told to stop.

The port is taken before the model is loaded, so that a port in use is known at once.
"""

import socket
from collections.abc import Callable

import uvicorn

from tailrace.core.errors import TailraceError
from tailrace.serve.arrival import App

BACKLOG = 2048


class PortTaken(TailraceError):
    """The port cannot be listened on."""

    code = "port-taken"


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet; raises PortTaken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortTaken(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    listener.set_inheritable(False)
    return listener


class _Server(uvicorn.Server):
    """Says once that it listens, and ends endless streams before it waits for connections to end."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell_started = started
        self._tell_stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._tell_stopping()
        await super().shutdown(sockets)


def run(
    app: App,
    listener: socket.socket,
    *,
    grace_s: float,
    started: Callable[[], None],
    stopping: Callable[[], None],
) -> None:
    """Serve until SIGINT or SIGTERM; requests inside get `grace_s` seconds to end."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(grace_s)),
    )
    _Server(config, started, stopping).run(sockets=[listener])
