"""Listens on a port and serves an application until it is told to stop.

The port is taken before the model is loaded, so that a port in use is known at once.
"""

import gc
import socket
import sys
from collections.abc import Callable

import uvicorn

from tailrace.core.errors import TailraceError
from tailrace.serve.arrival import App
from tailrace.serve.connection import Connection

BACKLOG = 2048
GARBAGE_AFTER = 20_000
"""New objects after which the collector looks for garbage: a request makes hundreds, and no cycles."""
SWITCH_S = 0.0005
"""How long one thread may keep the interpreter from another: the model's threads have work to begin."""


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


def served_by_uvicorn(app: App, grace_s: float) -> uvicorn.Config:
    """How an application is served; requests inside get `grace_s` seconds to end."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(grace_s)),
    )


def run(
    app: App,
    listener: socket.socket,
    *,
    grace_s: float,
    started: Callable[[], None],
    stopping: Callable[[], None],
) -> None:
    """Serve until SIGINT or SIGTERM; requests inside get `grace_s` seconds to end."""
    _at_ease()
    _Server(served_by_uvicorn(app, grace_s), started, stopping).run(sockets=[listener])


def _at_ease() -> None:
    """Settle the interpreter into serving: what is loaded by now stays, and is no garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
    sys.setswitchinterval(SWITCH_S)
