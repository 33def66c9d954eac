"""Server-sent events out of the pieces of a body, each with the moment at which it was whole.

Source of the format: the HTML standard, section "Server-sent events". Knows nothing of what events mean.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tailrace.latency.exchange import Chunk


class Frame(NamedTuple):
    """One event that holds data."""

    at_ns: int
    """When the chunk came that ended its last data line."""
    event: str
    data: str


def frames(chunks: Iterable[Chunk]) -> Iterator[Frame]:
    """The events of a stream; comments, and events without data, are none. An unfinished last one counts.

    The moment is that of the chunk that ended the last data line: the blank line that ends an event may
    come in a later one.
    """
    event, at_ns = "", 0
    data: list[str] = []
    for moment, line in _lines(chunks):
        if not line:
            if data:
                yield Frame(at_ns, event, "\n".join(data))
            event, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
            at_ns = moment
        elif name == "event":
            event = value
    if data:
        yield Frame(at_ns, event, "\n".join(data))


def _lines(chunks: Iterable[Chunk]) -> Iterator[tuple[int, str]]:
    """Lines with the moment at which each was whole; ends are LF, CR LF or CR."""
    rest, skip_lf, moment = b"", False, 0
    for moment, piece in chunks:
        data = piece[1:] if skip_lf and piece.startswith(b"\n") else piece
        skip_lf = skip_lf and not piece
        parts = (rest + data).replace(b"\r\n", b"\n")
        if parts.endswith(b"\r"):  # its LF may be in the next piece
            skip_lf = True
        *whole, rest = parts.replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield moment, line.decode("utf-8", "replace")
    if rest:
        yield moment, rest.decode("utf-8", "replace")
