"""Listens on a port and serves an application until it is told to stop.

The port is taken before the model is loaded, so that a port in use is known at once. After SIGTERM it
stays open until the work inside is done: who comes then is told so by the application.
"""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from types import FrameType

import uvicorn

from tailrace.core.errors import TailraceError
from tailrace.serve.arrival import App
from tailrace.serve.connection import Connection

BACKLOG = 2048
GARBAGE_AFTER = 20_000
"""New objects after which the collector looks for garbage: a request makes hundreds, and no cycles."""
SWITCH_S = 0.0005
"""How long one thread may keep the interpreter from another: the model's threads have work to begin."""
LOOK_S = 0.1
"""Seconds between two looks whether a drain was cut short by a second signal."""


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
        why = error.strerror or error
        raise PortTaken(
            f"cannot listen on {host}:{port}: {why}; take another with --port (0: any free one)"
        ) from error
    listener.set_inheritable(False)
    return listener


class _Server(uvicorn.Server):
    """Says once that it listens; when told to stop, ends endless streams and drains before it closes."""

    def __init__(
        self,
        config: uvicorn.Config,
        started: Callable[[], None],
        stopping: Callable[[], None],
        drain: Callable[[], Awaitable[None]],
        notice_s: float,
    ) -> None:
        super().__init__(config)
        self._tell_started = started
        self._tell_stopping = stopping
        self._drain = drain
        self._notice_s = notice_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGINT:
            self._notice_s = 0.0  # a person waits for it, not a load balancer
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._tell_stopping()

        async def noticed() -> None:
            await asyncio.sleep(self._notice_s)

        draining = asyncio.gather(self._drain(), noticed())
        while not draining.done() and not self.force_exit:
            await asyncio.wait([draining], timeout=LOOK_S)
        draining.cancel()
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


async def _nothing_to_drain() -> None:
    """What an application that drains when its lifespan ends does before."""


def run(
    app: App,
    listener: socket.socket,
    *,
    grace_s: float,
    started: Callable[[], None],
    stopping: Callable[[], None],
    drain: Callable[[], Awaitable[None]] = _nothing_to_drain,
    notice_s: float = 0.0,
) -> None:
    """Serve until SIGINT or SIGTERM; requests inside get `grace_s` seconds to end.

    The listener stays open until `drain` is done, after SIGTERM for `notice_s` seconds at least.
    """
    _at_ease()
    config = served_by_uvicorn(app, grace_s)
    _Server(config, started, stopping, drain, notice_s).run(sockets=[listener])


def _at_ease() -> None:
    """Settle the interpreter into serving: what is loaded by now stays, and is no garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
    sys.setswitchinterval(SWITCH_S)
