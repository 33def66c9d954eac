"""Server-sent events out of the pieces of a body, each with the moment at which it was whole.

The moment is that of the piece that ended the last data line: the blank line that ends an event may come in a
later one. Knows nothing of what events mean.
"""

from collections.abc import Iterable, Iterator

from tailrace.latency.exchange import Chunk
from tailrace.wire.sse import Event, EventReader


def frames(chunks: Iterable[Chunk]) -> Iterator[Event]:
    """The events of a stream; comments, and events without data, are none. An unfinished last one counts.

    Raises BadEventStream, once the events before it have been given.
    """
    reader, at_ns = EventReader(), 0
    for at_ns, data in chunks:
        yield from reader.feed(data, at_ns)
    yield from reader.end(at_ns)
