"""Whatever the moments and whatever the server says: the parts add up to the wall time."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.latency.exchange import Stamps
from tailrace.latency.partition import Figure, Knowledge, Marks, partition
from tailrace.wire.record import CLIENT_PARTS, IDENTITY_MS

SPAN = st.integers(0, 10**12)
FIGURES = st.dictionaries(
    st.sampled_from(["queue", "tokenize", "prefill", "infer", "think", "generate"]),
    st.builds(Figure, SPAN, st.sampled_from(["declared", "estimated"])),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Stamps, Knowledge]:
    """A request that got as far as it got, with a stream or without."""
    moment = draw(st.integers(0, 10**15))
    stamps = Stamps(moment, moment + draw(SPAN))
    names = ["connected", "sent", "first_byte", "last_byte", "parsed"]
    if draw(st.booleans()):
        names = ["dns_start", "dns", "tcp", "tls", *names]
    reached = draw(st.integers(0, len(names)))
    moment = stamps.taken
    tokens: list[int] = []
    for name in names[:reached]:
        moment += draw(SPAN)
        setattr(stamps, name, moment)
        if name == "first_byte" and draw(st.booleans()):
            for _ in range(3):
                moment += draw(SPAN)
                tokens.append(moment)
    if stamps.last_byte is None:
        stamps.ended = moment + draw(SPAN)
    marks = Marks(*tokens)
    if tokens and draw(st.booleans()):
        marks = Marks(tokens[0], None, tokens[2])
    known = Knowledge(
        marks=marks,
        floor=draw(st.none() | st.builds(Figure, SPAN, st.just("measured"))),
        inside=draw(FIGURES),
    )
    return stamps, known


@given(requests())
def test_the_parts_add_up_to_the_wall_time(request: tuple[Stamps, Knowledge]) -> None:
    stamps, known = request
    divided = partition(stamps, known)
    total = sum(part.ms for part in divided.parts.values())
    assert abs(total - divided.wall_ns * 1e-6) <= IDENTITY_MS
    assert [name for name in CLIENT_PARTS if name in divided.parts] == list(divided.parts)


@given(requests())
def test_only_the_residual_may_be_negative(request: tuple[Stamps, Knowledge]) -> None:
    parts = partition(*request).parts
    for name, part in parts.items():
        assert part.ms >= 0 or (name == "other" and part.source == "residual")
