"""A session whose runs happen in processes of their own, one for each slot: the parent's side.

A crash of the runtime costs the run that crashed it; a run that hangs is ended by ending its process.
A process that died is started again. Knows its children by their command line and their messages.
"""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NoReturn

from tailrace.core.errors import ModelDied, ModelError, ModelTimeout
from tailrace.models.errors import ModelRestarting, ModelUnavailable
from tailrace.models.frames import receive_array, receive_head, send_batch
from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

log = logging.getLogger(__name__)

BACKOFF_S = (0.1, 0.5, 2.0, 10.0)
"""Pauses before a process that died without an answer is started again, growing to the last."""
START_S_MAX = 30.0
"""The longest a run waits for a process, and the longest a process may take to open the model."""
BAD_STARTS = 2
"""After so many starts in a row that failed, runs no longer wait for that process."""


class Hung(ModelTimeout):
    """A run did not come back, so its process was ended and started again."""

    whole = True
    """Trying the halves would hang as long again."""


class Life:
    """A child from its start to its end, and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            whose = ["--fd", str(theirs.fileno()), "--parent", str(os.getpid())]
            self.child = subprocess.Popen(
                [*command, *whose],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # It finds the packages that we found, however we came to them.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.connection = Connection(ours.detach())
        self.used = False
        """Whether a run is on it; then the run's thread is who closes the socket."""
        self.over = False
        """Whether its end was noticed."""
        self.broken = False
        """Whether a run found it gone, or ended it; it gets no other."""
        self.answered = False

    def greeting(self) -> list[str]:
        """Names of the outputs of the model it opened; raises ModelUnavailable."""
        try:
            head = receive_head(self.connection) if self.connection.poll(START_S_MAX) else {}
        except (EOFError, OSError):
            raise ModelUnavailable("the process ended while it opened the model") from None
        if "outputs" not in head:
            why = head.get("failed", f"the model did not open within {START_S_MAX:g} s")
            raise ModelUnavailable(why)
        outputs: list[str] = head["outputs"]
        return outputs

    def ask(self, batch: Sequence[Tokens], output: str, run_max_s: float) -> FloatArray:
        """One run; by one caller at a time."""
        try:
            send_batch(self.connection, batch, output)
            if not self.connection.poll(run_max_s):
                self.broken = True
                self.kill()
                raise Hung(f"The run took more than {run_max_s:g} s; its process was ended.")
            head = receive_head(self.connection)
            if "error" in head:
                raise ModelError(f"The model failed: {head['error']}")
            answer = receive_array(self.connection, head)
        except (EOFError, OSError):
            self.broken = True
            raise ModelDied(
                "The process that ran the model died while it worked on this."
            ) from None
        self.answered = True
        return answer

    def ended(self) -> bool:
        """Whether the child is gone, seen from an idle socket: then there is an end to be read."""
        return self.connection.poll()

    def kill(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            self.child.kill()


class SessionProcesses:
    """`count` processes that each run the model of `command`; opened when the first of them is ready."""

    def __init__(
        self, name: str, command: Sequence[str], count: int, *, run_max_s: float = 60.0
    ) -> None:
        self.name = name
        self.restarts = 0
        """Lives that ended by themselves."""
        self._command = list(command)
        self._run_max_s = run_max_s
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._lives: dict[int, Life] = {}
        self._free: list[Life] = []
        self._bad_starts = [0] * count
        self._why = ""
        self._outputs: list[str] = []
        self._keepers = [
            threading.Thread(
                target=self._keep, args=(n,), name=f"tailrace-process-{n}", daemon=True
            )
            for n in range(count)
        ]
        for keeper in self._keepers:
            keeper.start()
        with self._changed:
            self._changed.wait_for(lambda: self._outputs or self._why, START_S_MAX)
        if not self._outputs:
            self.close()
            raise ModelUnavailable(self._why or f"{name} did not open within {START_S_MAX:g} s")

    @property
    def outputs(self) -> Sequence[str]:
        """Names of what the graph gives."""
        return self._outputs

    @property
    def pids(self) -> list[int]:
        """The processes that take runs."""
        with self._changed:
            return [life.child.pid for life in self._lives.values() if not life.over]

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        """One run in one of the processes, on whose answer the calling thread waits.

        Raises:
            ModelDied: the process died on it.
            Hung: it took longer than `run_max_s`.
            ModelRestarting: there is no process, and none will be soon.
            ModelError: the model failed on it.

        """
        life = self._take()
        try:
            return life.ask(batch, output, self._run_max_s)
        finally:
            self._give(life)

    def close(self) -> None:
        """End the processes; a run that is on one raises ModelDied."""
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            for life in self._lives.values():
                life.kill()
        for keeper in self._keepers:
            keeper.join(START_S_MAX)

    # -- keeping them alive: the kernel ends a child with the thread that started it ----------

    def _keep(self, number: int) -> None:
        unanswered = 0
        while not self._closing.is_set():
            life = self._live(number)
            if self._closing.is_set():
                return
            unanswered = 0 if life.answered else unanswered + 1
            self._closing.wait(BACKOFF_S[min(unanswered, len(BACKOFF_S)) - 1] if unanswered else 0)

    def _live(self, number: int) -> Life:
        """One life of one process, from start to end."""
        life = Life(self._command)
        try:
            outputs = life.greeting()
        except ModelUnavailable as error:
            life.kill()
            with self._changed:
                self._bad_starts[number] += 1
                self._why = str(error)
        else:
            with self._changed:
                self._bad_starts[number] = 0
                self._outputs = outputs
                self._lives[number] = life
                self._free.append(life)
                self._changed.notify_all()
            if self._closing.is_set():
                life.kill()
        status = life.child.wait()
        self._over(number, life)
        if not self._closing.is_set():
            how = signal.Signals(-status).name if status < 0 else f"status {status}"
            log.warning("a process of %s ended (%s); starting it again", self.name, how)
        return life

    def _over(self, number: int, life: Life) -> None:
        with self._changed:
            self.restarts += not self._closing.is_set()
            life.over = True
            self._lives.pop(number, None)
            if life in self._free:
                self._free.remove(life)
            if not life.used:
                life.connection.close()
            self._changed.notify_all()

    # -- giving them out ----------------------------------------------------------------------

    def _take(self) -> Life:
        ends = time.monotonic() + START_S_MAX
        with self._changed:
            while True:
                while self._free:
                    life = self._free.pop()
                    if not life.ended():  # else its keeper is about to notice
                        life.used = True
                        return life
                hopeless = self._closing.is_set() or min(self._bad_starts) >= BAD_STARTS
                if hopeless or not self._changed.wait(ends - time.monotonic()):
                    self._none()

    def _give(self, life: Life) -> None:
        with self._changed:
            life.used = False
            if life.over:
                life.connection.close()
            elif not life.broken:
                self._free.append(life)
                self._changed.notify()

    def _none(self) -> NoReturn:
        raise ModelRestarting(f"No process of {self.name} is ready. {self._why}".strip())
