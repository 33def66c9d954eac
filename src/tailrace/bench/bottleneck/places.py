"""The places of the essay's story: where a model answers, how far away, beside whom, how fast.

Plain data that a process can be started with. Times are milliseconds. Knows nothing of how it is served.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """One server, and the way to it."""

    name: str
    net_ms: float
    """The way there and back."""
    slots: int
    """Answers under way at once; the rest stands in one line."""
    generate_ms: float
    """The median of a whole answer's generation; lognormal."""
    think_ms: float = 0.0
    """The median of thinking before it."""
    prefill_ms: float = 12.0
    spread: float = 0.15
    """Sigma of the logarithm of all three."""
    others_per_s: float = 0.0
    """Other people's requests in the same line."""
    others_ms: float = 300.0
    """The mean of theirs; exponential."""
    tokens: int = 12
    seed: int = 1

    def to_json(self) -> dict[str, Any]:
        """For the command line of its process."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "Place":
        """Read what `to_json` wrote; unknown names are mistakes."""
        return cls(**{field.name: body[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Act:
    """One measurement of the story."""

    key: str
    place: Place
    rate: float
    """Requests a second, evenly."""
    n: int
    timeout_s: float
    reasoning: str | None = None
    """What is asked of the model: "none" or nothing."""


LIMIT_S = 1.5
"""How long the product waits for an answer: the subtitle is late by then."""
PATIENT_S = 30.0
"""How long a measurement waits that wants to know how long it takes."""
DISTANCE_MS = 275.0
NEAR_MS = 12.0
EDGE_MS = 25.0
GENERATE_MS = 55.0
FASTER = 2.0
"""How many times faster the dedicated machine of the third place is."""
SLOWER = 0.042
"""How fast the edge is against the far place: it is near, and not made for this."""

FAR = Place(
    "far and shared",
    net_ms=DISTANCE_MS,
    slots=4,
    generate_ms=GENERATE_MS,
    think_ms=900.0,
    others_per_s=10.2,
    seed=11,
)
EDGE = Place(
    "near but slow",
    net_ms=EDGE_MS,
    slots=16,
    generate_ms=GENERATE_MS / SLOWER,
    prefill_ms=FAR.prefill_ms / SLOWER,
    seed=13,
)
NEAR = Place(
    "near, fast, dedicated",
    net_ms=NEAR_MS,
    slots=1,
    generate_ms=GENERATE_MS / FASTER,
    prefill_ms=FAR.prefill_ms / FASTER,
    seed=14,
)
FIRST_DATE = Place(
    "far, at the first date",
    net_ms=DISTANCE_MS,
    slots=8,
    generate_ms=150.0,
    think_ms=900.0,
    others_per_s=7.0,
    seed=10,
)

ACTS = (
    Act("first", FIRST_DATE, rate=3.5, n=112, timeout_s=PATIENT_S),
    Act("later", FAR, rate=5.0, n=140, timeout_s=PATIENT_S, reasoning="none"),
    Act("edge", EDGE, rate=5.0, n=100, timeout_s=LIMIT_S, reasoning="none"),
    Act("near", NEAR, rate=5.0, n=120, timeout_s=LIMIT_S, reasoning="none"),
)
