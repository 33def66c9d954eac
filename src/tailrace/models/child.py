"""A model in a process of its own, under a limit on the memory it really uses.

When the limit or the kernel kills it, those who waited on it get ModelDied, and it is started again.
The parent side: knows the child only by its command line and its messages.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tailrace.core.errors import LaneFull, ModelDied, ModelError
from tailrace.core.events import ChildRestarted, Events
from tailrace.models.child_main import HEADER, frame
from tailrace.models.errors import ModelRestarting

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02
"""How often the memory of a busy child is read."""
BACKOFF_S = (0.1, 0.5, 2.0, 10.0)
"""Pauses before starting a child again that died before anybody asked it, growing to the last."""
PAGE = os.sysconf("SC_PAGE_SIZE")

CHILD_ENVIRONMENT = {
    # Large blocks go back to the system when they are freed, so that use shrinks after the crowd.
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """What the child said: the result, and when each part ended, on the machine's monotonic clock."""

    result: Any
    marks: list[tuple[str, float]]


def resident_bytes(pid: int) -> int:
    """The memory a process really uses now; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


class ChildModel:
    """Keeps one child running. `limit_bytes` of 0 is no limit; it may be changed at any time."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        limit_bytes: int = 0,
        in_flight_max: int = 256,
        events: Events | None = None,
    ) -> None:
        self.name = name
        self.limit_bytes = limit_bytes
        self.in_flight_max = in_flight_max
        self.restarts = 0
        self.killed_because = ""
        """Why the last life ended: limit, kernel or crash; empty in the first."""
        self.peak_bytes = 0
        self.resident_bytes = 0
        self.start_s = 1.0
        self._command = list(command)
        self._events = events or Events()
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pending: dict[int, asyncio.Future[ChildAnswer]] = {}
        self._number = 0
        self._ready = asyncio.Event()
        self._stopping = False
        self._over_limit = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> int:
        """Requests inside the child."""
        return len(self._pending)

    @property
    def ready(self) -> bool:
        """Whether the child takes requests."""
        return self._ready.is_set()

    @property
    def pid(self) -> int | None:
        """The child's process, if there is one."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the child and keep it running; does not wait until it is ready."""
        self._tasks = [asyncio.create_task(self._keep()), asyncio.create_task(self._watch())]

    async def wait_ready(self) -> None:
        """Wait until the child takes requests."""
        await self._ready.wait()

    async def ask(self, body: Any) -> ChildAnswer:
        """The child's answer.

        Raises:
            ModelRestarting: it is not there now.
            ModelDied: it was killed while it worked on this.
            LaneFull: too many are inside already.
            ModelError: it says that the model failed.

        """
        if self._writer is None or not self.ready:
            raise ModelRestarting
        if self.running >= self.in_flight_max:
            raise LaneFull(f"The child holds {self.in_flight_max} requests and takes no more.")
        self._number += 1
        number = self._number
        answer: asyncio.Future[ChildAnswer] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        try:
            self._writer.write(frame({"number": number, "body": body}))
            return await answer
        finally:
            self._pending.pop(number, None)

    async def stop(self) -> None:
        """Stop the child for good; those who wait get ModelDied."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._let_go()

    # -- one life after another ---------------------------------------------------------------

    async def _keep(self) -> None:
        failures = 0
        while not self._stopping:
            was_of_use = await self._live()
            failures = 0 if was_of_use else failures + 1
            self.restarts += 1
            self._events.emit(ChildRestarted(self.name, self.killed_because))
            if failures:
                await asyncio.sleep(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    async def _live(self) -> bool:
        """One life of the child, from start to death; returns whether it was ever asked anything."""
        self._over_limit = False
        began, asked = time.monotonic(), self._number
        try:
            reader, process = await self._spawn()
        except OSError as error:
            self.killed_because = "crash"
            log.warning("child %s cannot be started: %s", self.name, error)
            return False
        try:
            await self._hear(reader, began)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._explain(await process.wait())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("child %s speaks another language: %r", self.name, error)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            self.killed_because = "crash"
        finally:
            self._let_go()
        return self._number > asked

    async def _spawn(self) -> tuple[asyncio.StreamReader, asyncio.subprocess.Process]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = process = await asyncio.create_subprocess_exec(
                    *self._command,
                    "--fd",
                    str(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    env={**os.environ, **CHILD_ENVIRONMENT},
                )
            except BaseException:
                ours.close()
                raise
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        return reader, process

    async def _hear(self, reader: asyncio.StreamReader, began: float) -> None:
        """Take in what the child says, until it says no more."""
        while True:
            size = HEADER.unpack(await reader.readexactly(HEADER.size))[0]
            message = orjson.loads(await reader.readexactly(size))
            if message.get("ready"):
                self.start_s = time.monotonic() - began
                self._ready.set()
            else:
                self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        waiting = self._pending.get(message["number"])
        if waiting is None or waiting.done():
            return  # the caller left; a naive server finishes the work all the same
        if "error" in message:
            waiting.set_exception(ModelError(f"The model failed: {message['error']}"))
        else:
            marks = [(part, at) for part, at in message["marks"]]
            waiting.set_result(ChildAnswer(message["result"], marks))

    def _explain(self, status: int) -> None:
        by_kernel = "kernel" if status == -signal.SIGKILL else "crash"
        self.killed_because = "limit" if self._over_limit else by_kernel
        log.warning(
            "child %s ended (%s, status %d) with %d requests inside; starting it again",
            self.name,
            self.killed_because,
            status,
            self.running,
        )

    def _let_go(self) -> None:
        self._ready.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        died = ModelDied(f"The process of {self.name} was killed while it worked on this.")
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_exception(died)
        self.resident_bytes = 0

    # -- the limit ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S if self._pending else 10 * LOOK_EVERY_S)
            if self._process is None or self._process.returncode is not None:
                continue
            self.resident_bytes = resident_bytes(self._process.pid)
            self.peak_bytes = max(self.peak_bytes, self.resident_bytes)
            if self.ready and 0 < self.limit_bytes < self.resident_bytes:
                self._over_limit = True
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
