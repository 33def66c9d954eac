"""The child's side of a model in a process of its own: no line, every request at once on its own thread.

This is the honest bad example: nobody waits, nobody is refused, and memory grows with the crowd. Speaks
length-prefixed JSON over an inherited socket; ends when the parent does.
"""

import argparse
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

Mark = Callable[[str], None]
Handler = Callable[[Any, Mark], Any]
"""Answers one body; marks the parts of the way as they end."""

HEADER = struct.Struct("!I")
NICE = 10


def read_frame(connection: socket.socket) -> Any | None:
    """The next message, or None when the other side is gone."""
    header = _read_exactly(connection, HEADER.size)
    if header is None:
        return None
    body = _read_exactly(connection, HEADER.unpack(header)[0])
    return None if body is None else orjson.loads(body)


def _read_exactly(connection: socket.socket, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = connection.recv(size - len(pieces))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)


def frame(message: Any) -> bytes:
    """A message as it goes over the socket."""
    body = orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY)
    return HEADER.pack(len(body)) + body


def serve(connection: socket.socket, handler: Handler) -> None:
    """Answer every request on a thread of its own until the parent is gone."""
    sending = threading.Lock()

    def send(message: bytes) -> None:
        try:
            with sending:
                connection.sendall(message)
        except OSError:
            os._exit(0)  # the parent is gone

    def work(number: int, body: Any) -> None:
        marks: list[tuple[str, float]] = [("wait", time.monotonic())]
        try:
            result = handler(body, lambda part: marks.append((part, time.monotonic())))
            message = frame({"number": number, "result": result, "marks": marks})
        except Exception as error:  # noqa: BLE001 - told to the caller, whatever it is
            what = f"{type(error).__name__}: {error}"
            message = frame({"number": number, "error": what, "marks": marks})
        send(message)

    send(frame({"ready": True}))
    while (message := read_frame(connection)) is not None:
        threading.Thread(
            target=work, args=(message["number"], message["body"]), daemon=True
        ).start()
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Open the model that the parent names and serve it naively."""
    from tailrace.models.open import open_naive  # noqa: PLC0415 - only this kind of child needs it

    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--cache-dir", type=Path)
    options = parser.parse_args(arguments)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)  # meant for the parent, whose end is ours
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    connection = socket.socket(fileno=options.fd)
    score = open_naive(options.source, options.cache_dir)
    serve(connection, lambda body, mark: score(body["text"], body["labels"], mark))


if __name__ == "__main__":
    main(sys.argv[1:])
