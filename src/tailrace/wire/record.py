"""One measured request as one line: its wall time, and the parts that add up to it.

The unit that probe, bench, compare and what-if share. Knows nothing of how a part was found, and nothing
of statistics over many rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import orjson

SCHEMA = 1
"""Grows when a reader of the older lines would misread the newer ones."""

CLIENT_PARTS = (
    "sched",
    "pool",
    "dns",
    "connect",
    "tls",
    "send",
    "net",
    "queue",
    "tokenize",
    "prefill",
    "infer",
    "think",
    "generate",
    "transfer",
    "client",
    "other",
)
"""The parts of a request from its intended start to its parsed result, in the order of reports."""

IDENTITY_MS = 0.001
"""By how much the parts of a row may miss its wall time: one microsecond."""

Source = Literal["measured", "declared", "estimated", "residual"]
Outcome = Literal["ok", "refused", "error", "timeout", "truncated"]


class BadRow(ValueError):
    """A line that is no row: what is wrong with it, in one sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    """How long one part took, in milliseconds, and how that is known."""

    ms: float
    """May be negative for a residual, which is never clamped."""
    source: Source
    low: float | None = None
    high: float | None = None
    """The interval of an estimate; None elsewhere."""
    note: str | None = None
    """For people: "to the edge", "averaged over inputs"."""

    def to_json(self) -> dict[str, Any]:
        """The part as it stands in a line; what is not known is left out."""
        body: dict[str, Any] = {"ms": self.ms, "source": self.source}
        for name in ("low", "high", "note"):
            value = getattr(self, name)
            if value is not None:
                body[name] = value
        return body


@dataclass(frozen=True, slots=True)
class Row:
    """One request, as its caller saw it."""

    wall_ms: float
    """Intended start to parsed result; for a timeout the time that was waited: the true one is longer."""
    parts: Mapping[str, Part]
    status: int | None = None
    """None where no answer came."""
    outcome: Outcome = "ok"
    at_s: float = 0.0
    """The intended start, in seconds since the run began."""
    unix_s: float | None = None
    """The intended start by the wall clock: for the time of day only, never subtracted."""
    phase: str = "steady"
    """"cold", "warm-up" or "steady"."""
    prompt: str | None = None
    """A hash that pairs requests of the same content between runs."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else is known, by name: tokens, reuse, batch_size, region, inconsistent, error, ..."""

    @property
    def censored(self) -> bool:
        """Whether the wall time is a lower bound, because somebody stopped waiting."""
        return self.outcome in {"timeout", "truncated"}

    def miss_ms(self) -> float:
        """By how much the parts miss the wall time; within IDENTITY_MS on every row."""
        return sum(part.ms for part in self.parts.values()) - self.wall_ms

    def to_line(self) -> bytes:
        """The row as one line of JSON, with its newline."""
        body: dict[str, Any] = {
            "wall_ms": self.wall_ms,
            "parts": {name: part.to_json() for name, part in self.parts.items()},
            "status": self.status,
            "outcome": self.outcome,
            "at_s": self.at_s,
            "phase": self.phase,
        }
        for name in ("unix_s", "prompt"):
            value = getattr(self, name)
            if value is not None:
                body[name] = value
        if self.detail:
            body["detail"] = dict(self.detail)
        return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)

    @classmethod
    def from_line(cls, line: bytes | str) -> "Row":
        """Read a line; raises BadRow and never a wrong number."""
        try:
            body = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadRow(f"not JSON: {error}") from None
        if not isinstance(body, dict) or not isinstance(body.get("parts"), dict):
            raise BadRow("a row is an object with wall_ms and parts")
        outcome = body.get("outcome", "ok")
        if outcome not in get_args(Outcome):
            raise BadRow(f"outcome is one of {', '.join(get_args(Outcome))}, not {outcome!r}")
        return cls(
            wall_ms=_number(body, "wall_ms"),
            parts={name: _part(name, value) for name, value in body["parts"].items()},
            status=body.get("status"),
            outcome=outcome,
            at_s=_number(body, "at_s", 0.0),
            unix_s=body.get("unix_s"),
            phase=body.get("phase", "steady"),
            prompt=body.get("prompt"),
            detail=body.get("detail", {}),
        )


def _number(body: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRow(f"{name} is a number of milliseconds or seconds, not {value!r}")
    return float(value)


def _part(name: str, body: Any) -> Part:
    if not isinstance(body, dict) or body.get("source") not in get_args(Source):
        raise BadRow(f"part {name} has ms and a source of {', '.join(get_args(Source))}")
    return Part(
        ms=_number(body, "ms"),
        source=body["source"],
        low=body.get("low"),
        high=body.get("high"),
        note=body.get("note"),
    )
