"""Server-sent events, both ways: the lines of a stream as they come, and one event as bytes.

Source of the format: the HTML standard, section "Server-sent events". Knows nothing of what the events mean.
"""

from dataclasses import dataclass
from typing import Any

import orjson

EVENT_BYTES_MAX = 1 << 20
"""The largest event that is read."""


class BadEventStream(ValueError):
    """The stream is no event stream, or an event is too large."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream: its name ("message" where it has none) and its data."""

    data: str
    name: str = "message"
    at_ns: int = 0
    """The moment given with the piece that ended its last data line."""


def event(name: str, body: Any) -> bytes:
    """One event as it goes over the wire, its body as JSON."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(body))


class EventReader:
    """Reads events out of pieces cut anywhere; comments and events without data are passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._after_return = False
        self._at_ns = 0

    def feed(self, piece: bytes, at_ns: int = 0) -> list[Event]:
        """The events that `piece`, which came at `at_ns`, completes; raises BadEventStream."""
        if not piece:
            return []
        if self._after_return and piece[:1] == b"\n":
            piece = piece[1:]
        self._after_return = False
        found: list[Event] = []
        *lines, self._rest = self._lines(self._rest + piece)
        for line in lines:
            self._size += len(line)
            self._line(line, at_ns, found)
        if self._size + len(self._rest) > EVENT_BYTES_MAX:
            raise BadEventStream(f"an event is larger than {EVENT_BYTES_MAX} bytes")
        return found

    def end(self, at_ns: int = 0) -> list[Event]:
        """The event that the end of the stream, at `at_ns`, leaves unfinished, if there is one."""
        found: list[Event] = []
        if self._rest:
            self._line(self._rest, at_ns, found)
            self._rest = b""
        self._line(b"", at_ns, found)
        return found

    def _lines(self, text: bytes) -> list[bytes]:
        """Lines end with LF, CRLF or CR; what is behind the last end is not yet a line."""
        if b"\r" not in text:
            return text.split(b"\n")
        self._after_return = text.endswith(b"\r")
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")

    def _line(self, line: bytes, at_ns: int, found: list[Event]) -> None:
        if not line:
            if self._data:
                found.append(Event("\n".join(self._data), self._name or "message", self._at_ns))
            self._name, self._data, self._size = "", [], 0
            return
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"data":
            self._data.append(text)
            self._at_ns = at_ns
        elif field == b"event":
            self._name = text
