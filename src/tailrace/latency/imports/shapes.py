"""What every reader of somebody else's file shares: rows whose unknown time is the residual, and errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailrace.wire.record import CLIENT_PARTS, Outcome, Part, Row

UNTOLD = "this tool does not tell network, queue and inference apart"


class BadImport(ValueError):
    """The file holds nothing that can be imported: why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One run out of somebody else's file."""

    tool: str
    name: str
    rows: tuple[Row, ...]
    began: datetime
    target: str = ""
    protocol: str = ""
    model: str | None = None
    kind: str = "imported"
    """How it was loaded, in the tool's own word."""
    offered_per_s: float | None = None
    duration_s: float = 0.0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def row_of(
    wall_ms: float,
    known: Mapping[str, float],
    *,
    at_s: float,
    unix_s: float | None = None,
    status: int | None = None,
    outcome: Outcome = "ok",
    phase: str = "steady",
    detail: Mapping[str, Any] | None = None,
) -> Row:
    """A row from the spans that the tool measured; the rest of the wall time is `other`."""
    parts = {name: Part(ms, "measured") for name, ms in known.items()}
    parts["other"] = Part(wall_ms - sum(known.values()), "residual", note=UNTOLD)
    ordered = {name: parts[name] for name in CLIENT_PARTS if name in parts}
    return Row(
        wall_ms,
        ordered,
        status,
        outcome,
        at_s,
        unix_s,
        phase,
        detail={name: value for name, value in (detail or {}).items() if value is not None},
    )


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
