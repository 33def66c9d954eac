"""What a target is: it says what to send, and reads what came. Protocols and data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.latency.exchange import Exchange
from tailrace.latency.partition import NO_MARKS, Figure, Marks


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to send."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """May hold a key: never printed, never stored."""
    body: bytes = b""
    prompt: str | None = None
    """A hash that pairs requests of the same content between runs."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What is known of it beforehand: batch_size, streamed, reasoning asked."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the answer says, once it is understood."""

    problem: str | None = None
    """Why a whole answer of a good status is none: one sentence."""
    truncated: bool = False
    """Whether the answer ended before it said that it was done."""
    marks: Marks = NO_MARKS
    inside: Mapping[str, Figure] = field(default_factory=dict)
    """Figures of parts inside the wait that the target itself knows; others are read from the table."""
    resolution_ns: int = 0
    """By how much these may together be too long."""
    thought_share: float | None = None
    """Which share of the generated tokens were thoughts, where only a whole answer came."""
    again: str | None = None
    """Where the answer has to be asked for once more: it is not ready yet."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    answer: Any = None
    """The answer's JSON (of a stream: its last frames merged), where declared times may stand."""


class Target(Protocol):
    """Something to measure."""

    @property
    def name(self) -> str:
        """For people."""

    def ask(self, index: int) -> Ask:
        """The request number `index`, counted from 0; the same every time."""

    def read(self, exchange: Exchange) -> Reading:
        """Understand an answer of a good status; what is wrong with it is data, nothing is raised.

        Of an answer that was cut off only the marks are asked for.
        """
