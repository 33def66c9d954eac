"""A process that runs one session: `session_child.py --fd N --path FILE --runtime NAME`.

It runs what it is asked, one batch after the other, and is gone when its parent is: by the end of the
socket while it waits, by the kernel's word while it computes.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from tailrace.core.errors import TailraceError
from tailrace.models.frames import receive_batch, send_array, send_head
from tailrace.models.runtimes import RUNTIMES
from tailrace.models.session import Session
from tailrace.models.threads import NICE
from tailrace.models.tokens import Tokens

PR_SET_PDEATHSIG = 1
WARM_RUNS = ((1, 8), (1, 32), (8, 32))
"""Texts and their tokens: alone, and as many as a run of the usual size has."""


def die_with_parent(parent: int) -> None:
    """Have the kernel kill us when the thread that started us is gone; leave if it is gone already."""
    with contextlib.suppress(OSError, AttributeError):  # Linux only; elsewhere the socket must do
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def warm(session: Session) -> None:
    """Touch the memory once, so that the first caller after a restart does not pay for it."""
    for rows, length in WARM_RUNS:
        # A model that reads fewer tokens is merely less warm.
        with contextlib.suppress(Exception):
            session.run([Tokens([1] * length, [0] * length)] * rows, session.outputs[0])


def serve(connection: Connection, session: Session) -> None:
    """Answer until the other side is gone."""
    send_head(connection, {"outputs": list(session.outputs)})
    with contextlib.suppress(EOFError, OSError):
        while True:
            batch, output = receive_batch(connection)
            try:
                answer = session.run(batch, output)
            except Exception as error:  # noqa: BLE001 - told to the caller, whatever it is
                send_head(connection, {"error": f"{type(error).__name__}: {error}"})
            else:
                send_array(connection, answer)


def main(arguments: list[str]) -> None:
    """Open what the parent names and serve it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), required=True)
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)  # meant for the parent, whose end is ours
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    connection = Connection(options.fd)
    try:
        session = RUNTIMES[options.runtime](options.path)
    except TailraceError as error:
        send_head(connection, {"failed": str(error)})
        return
    warm(session)
    serve(connection, session)


if __name__ == "__main__":
    main(sys.argv[1:])
