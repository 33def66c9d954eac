"""One HTTP request and its answer as data: the moments on one monotonic clock, and what came.

Knows nothing of sockets, of what was asked for, or of how the time is divided into parts.
"""

import time
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

now_ns = time.monotonic_ns
"""The one clock: CLOCK_MONOTONIC, which asyncio schedules by and no step of the wall clock moves."""

FailureKind = Literal[
    "unreachable", "tls", "timeout", "hung-up", "truncated", "malformed", "too-large"
]


class Chunk(NamedTuple):
    """A piece of the body as it came off the connection."""

    at_ns: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no whole answer, in one sentence for people."""

    kind: FailureKind
    message: str


@dataclass(slots=True)
class Stamps:
    """Moments in nanoseconds of `now_ns`, in the order in which they happen; None where not reached."""

    intended: int
    """s0: when the request was meant to start."""
    taken: int
    """s1: when a sender took it up."""
    dns_start: int | None = None
    """Set, with the next three, where a connection was made for this request."""
    dns: int | None = None
    tcp: int | None = None
    tls: int | None = None
    connected: int | None = None
    """s2: the connection in hand."""
    sent: int | None = None
    """s3: the last byte of the request handed to the system."""
    first_byte: int | None = None
    """s4: the first byte of the answer."""
    head: int | None = None
    """The whole head of the answer."""
    last_byte: int | None = None
    """s8: the last byte of the answer."""
    parsed: int | None = None
    """s9: the answer understood; whoever reads it sets it."""
    ended: int | None = None
    """When it failed; None for a whole answer."""


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What is known of the connection that carried the request, when its answer had come."""

    reused: bool
    peer: str
    """Address and port of the other end."""
    tls_version: str | None = None
    min_rtt_ns: int | None = None
    """The kernel's smallest round trip to this address so far (TCP_INFO); None where it tells none."""
    retransmits: int = 0
    """Segments sent again since the connection was made."""
    requests: int = 1
    """Which request on this connection it was, counted from 1."""


@dataclass(slots=True)
class Exchange:
    """A request, its moments and its answer; a failed one says why and keeps what it reached."""

    method: str
    url: str
    stamps: Stamps
    sent_bytes: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Names in lower case; a repeated one is joined by commas."""
    trailers: dict[str, str] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    connection: ConnectionFacts | None = None
    failure: Failure | None = None
    retried: bool = False
    """Whether a kept connection turned out closed, and a fresh one was made instead."""

    @property
    def body(self) -> bytes:
        """All of the body that came."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def complete(self) -> bool:
        """Whether a whole answer came, whatever its status."""
        return self.failure is None and self.stamps.last_byte is not None

    def fail(self, kind: FailureKind, message: str) -> None:
        """Note why it failed, once: the first reason stands."""
        if self.failure is None:
            self.failure = Failure(kind, message)
            self.stamps.ended = now_ns()
