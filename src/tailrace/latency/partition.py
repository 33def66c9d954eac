"""From stamps and what is known of the wait to parts that add up to the wall time, to the nanosecond.

Every span between two stamps is measured. Only the wait, from the last byte of the request to the first
token (or byte) of the answer, is divided by outside knowledge; what is left of it is `other`: a residual
that may be negative and is never clamped. Knows nothing of providers or of HTTP.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tailrace.latency.exchange import Stamps
from tailrace.wire.record import CLIENT_PARTS, Part, Source

NS = 1e-6
"""Milliseconds in a nanosecond."""
UNTOLD = "cannot tell queue from inference"
CUT_OFF = "cut off"
"""Noted at the part in which a request ended without its whole answer."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How long something inside the wait took, and how that is known."""

    ns: int
    source: Source
    low: int | None = None
    high: int | None = None
    note: str | None = None

    def part(self) -> Part:
        """The figure as a part of a row."""
        low = None if self.low is None else self.low * NS
        high = None if self.high is None else self.high * NS
        return Part(self.ns * NS, self.source, low, high, self.note)


@dataclass(frozen=True, slots=True)
class Marks:
    """The moments of a streamed answer that only its reader can see; None where there was none."""

    first_token: int | None = None
    """s5: the first token of any channel."""
    first_visible: int | None = None
    """s6: the first token that a person sees."""
    last_token: int | None = None
    """s7"""


NO_MARKS = Marks()
"""An answer without tokens."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of one request besides its stamps."""

    marks: Marks = NO_MARKS
    floor: Figure | None = None
    """The path's share of the wait: it becomes `net`."""
    inside: Mapping[str, Figure] = field(default_factory=dict)
    """Parts inside the wait by name: queue, tokenize, prefill, infer, think, generate."""
    resolution_ns: int = 0
    """By how much the figures inside may together be too long."""
    doubt: str | None = None
    """What is known to be odd about the figures: the likely cause where they do not fit."""
    rest_note: str | None = None
    """What the rest of the wait is, where something is known of it."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The parts of one request, in the order of reports."""

    wall_ns: int
    parts: dict[str, Part]
    inconsistent: str | None = None
    """The likely cause where the figures take more than the wait was."""


def partition(stamps: Stamps, known: Knowledge | None = None) -> Partition:
    """Divide the time from the intended start to the parsed result, or to the failure."""
    known = known or Knowledge()
    end = _end(stamps)
    spans: dict[str, int] = {}
    notes: dict[str, str] = {}
    for name, ns, cut in _before_the_wait(stamps, end):
        spans[name] = ns
        if cut:
            notes[name] = CUT_OFF
    parts = {name: Part(ns * NS, "measured", note=notes.get(name)) for name, ns in spans.items()}
    inconsistent = None
    if stamps.sent is not None:
        first = _first(stamps, known.marks)
        wait = (end if first is None else first) - stamps.sent
        inside, rest = _wait_parts(wait, known)
        parts |= {name: figure.part() for name, figure in inside.items()}
        parts["other"] = Part(rest * NS, "residual", note=_rest_note(stamps, known))
        inconsistent = _inconsistent(rest, known)
        parts |= {
            name: Part(ns * NS, "measured", note=CUT_OFF if cut else None)
            for name, ns, cut in _after_the_wait(stamps, known.marks, end)
        }
    ordered = {name: parts[name] for name in CLIENT_PARTS if name in parts}
    return Partition(end - stamps.intended, ordered, inconsistent)


def _end(stamps: Stamps) -> int:
    for moment in (stamps.ended, stamps.parsed, stamps.last_byte):
        if moment is not None:
            return moment
    raise ValueError("the request has not ended")


def _before_the_wait(stamps: Stamps, end: int) -> Iterator[tuple[str, int, bool]]:
    """Names, spans and whether the request ended within them, up to the last byte sent."""
    yield "sched", stamps.taken - stamps.intended, False
    made = stamps.dns_start
    in_hand = end if stamps.connected is None else stamps.connected
    if made is None:
        yield "pool", in_hand - stamps.taken, stamps.connected is None
    else:
        steps = (("dns", stamps.dns), ("connect", stamps.tcp), ("tls", stamps.tls))
        since = made
        for name, until in steps:
            yield name, (end if until is None else until) - since, until is None
            if until is None:
                break
            since = until
        last = end if until is None else until
        yield "pool", (in_hand - stamps.taken) - (last - made), False
    if stamps.connected is not None:
        until = end if stamps.sent is None else stamps.sent
        yield "send", until - stamps.connected, stamps.sent is None


def _first(stamps: Stamps, marks: Marks) -> int | None:
    """Where the wait ends: at the first token, else at the first byte."""
    return marks.first_token if marks.first_token is not None else stamps.first_byte


def _wait_parts(wait: int, known: Knowledge) -> tuple[dict[str, Figure], int]:
    """The parts inside the wait, and what is left of it."""
    streamed = known.marks.first_token is not None
    inside = dict(known.inside)
    if known.floor is not None:
        inside["net"] = known.floor
    if streamed:  # what the stream's own stamps measure is no part of the wait
        inside.pop("generate", None)
        if _thought_aloud(known.marks):
            inside.pop("think", None)
    return inside, wait - sum(figure.ns for figure in inside.values())


def _thought_aloud(marks: Marks) -> bool:
    """Whether the stream's own stamps hold thinking; all of it, where nothing visible ever came."""
    visible = marks.last_token if marks.first_visible is None else marks.first_visible
    return visible is not None and visible != marks.first_token


def _after_the_wait(stamps: Stamps, marks: Marks, end: int) -> Iterator[tuple[str, int, bool]]:
    """Names, spans and whether the request ended within them, from the end of the wait on.

    Spans that were not reached are left out.
    """
    since = _first(stamps, marks)
    if since is None:
        return
    cut = stamps.last_byte is None
    if marks.first_token is not None:
        last = marks.last_token if marks.last_token is not None else since
        if cut:  # whoever breaks off in a stream is waited for until then: for the next token
            last = end
        visible = marks.first_visible if marks.first_visible is not None else last
        if visible != since:
            yield "think", visible - since, cut and marks.first_visible is None
        if not cut or marks.first_visible is not None:
            yield "generate", last - visible, cut
        since = last
        if cut:
            return
    whole = end if stamps.last_byte is None else stamps.last_byte
    yield "transfer", whole - since, cut
    if not cut:
        yield "client", end - whole, False


def _rest_note(stamps: Stamps, known: Knowledge) -> str | None:
    if stamps.first_byte is None:
        return "no answer came"
    if known.rest_note is not None:
        return known.rest_note
    return None if known.inside else UNTOLD


def _inconsistent(rest: int, known: Knowledge) -> str | None:
    """Whether the server's figures alone are longer than the wait; the path's floor is no evidence."""
    path = known.floor.ns if known.floor is not None else 0
    if not known.inside or rest + path >= -known.resolution_ns:
        return None
    return known.doubt or "the server says that it took longer than the answer did"
