"""Amounts with their unit: "10%" of a plan, "10req" requests, "10s" of time. A bare number means nothing.

Why typed: a warm-up of "10" was read as requests by one tool and as per cent by its label.
"""

import re
from dataclasses import dataclass
from typing import Literal

Unit = Literal["%", "req", "s"]
FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|req|ms|s|m|h)\s*")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of something."""

    value: float
    unit: Unit

    @classmethod
    def parse(cls, text: object) -> "Amount":
        """Read "10%", "10req", "500ms", "10s", "2m" or "1h"; raises ValueError."""
        found = FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r} is no amount; say 10% or 10req or 10s, with the unit")
        value, unit = float(found.group(1)), found.group(2)
        if unit == "%":
            if value > 100:
                raise ValueError(f"{text!r} is more than the whole")
            return cls(value, "%")
        if unit == "req":
            if value != int(value):
                raise ValueError(f"{text!r}: there are no parts of a request")
            return cls(value, "req")
        return cls(value * SECONDS[unit], "s")

    def __str__(self) -> str:
        return f"{self.value:g}{self.unit}"
