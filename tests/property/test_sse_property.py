"""However a stream is cut into pieces, it holds the same events, and each has the moment of its end."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tailrace.latency.exchange import Chunk
from tailrace.latency.sse import frames

STREAM = (
    ": a comment\r\n\r\n"
    'event: message\r\ndata: {"a": "하나"}\r\n\r\n'
    "data: two\ndata: lines\n\n"
    "data\n\n"
    ": keep-alive\n\nid: 3\nretry: 5\n\n"
    "data: by CR\r\rdata:without a space\n\n"
    "data: [DONE]\n\n"
).encode()
WHOLE = [(frame.name, frame.data) for frame in frames([Chunk(0, STREAM)])]


def pieces(data: bytes, cuts: list[int]) -> list[Chunk]:
    edges = [0, *sorted(cuts), len(data)]
    return [Chunk(index, data[a:b]) for index, (a, b) in enumerate(itertools.pairwise(edges))]


def test_what_the_stream_holds() -> None:
    assert WHOLE == [
        ("message", '{"a": "하나"}'),
        ("message", "two\nlines"),
        ("message", ""),
        ("message", "by CR"),
        ("message", "without a space"),
        ("message", "[DONE]"),
    ]


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_cuts_change_nothing(cuts: list[int]) -> None:
    assert [(f.name, f.data) for f in frames(pieces(STREAM, cuts))] == WHOLE


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_an_event_has_the_moment_of_the_piece_that_ended_its_data(cuts: list[int]) -> None:
    cut = pieces(STREAM, cuts)
    for frame in frames(cut):
        end = STREAM.index(frame.data.split("\n")[-1].encode()) if frame.data else None
        if end is None:
            continue
        line_end = end + len(frame.data.split("\n")[-1].encode())
        before = sum(len(chunk.data) for chunk in cut[: frame.at_ns])
        upto = before + len(cut[frame.at_ns].data)
        assert before <= line_end < upto + 1


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=9))
def test_any_bytes_are_read_without_a_fault(data: bytes, cuts: list[int]) -> None:
    list(frames(pieces(data, [min(cut, len(data)) for cut in cuts])))
