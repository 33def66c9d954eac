"""What is known of one request when it is over: its parts, where it went, how it ended.

Filled in on the way by whoever knows; read once, at the end, by metrics and traces. Never holds a text.
"""

from dataclasses import dataclass, field

from tailrace.core.work import Stamps
from tailrace.wire.tracing import (
    OPERATION,
    PROVIDER,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    Begun,
    Value,
)

ACCOUNT = "tailrace.account"
"""Where a request's scope keeps it."""
LEFT = 499
"""The status of an answer that nobody waited for."""
OPERATIONS = {"embedding": "embeddings", "cross-encoder": "rerank", "classifier": "classify"}
"""Kinds of models as operations; `embeddings` and `chat` are names of the semantic conventions."""


@dataclass(slots=True)
class Account:
    """One request; an empty word is what nobody told."""

    stamps: Stamps | None = None
    """None where no endpoint had a part in the answer."""
    door: str = ""
    """The door it came through; for models behind a lane of their own, the model's name."""
    lane: str = ""
    status: int = LEFT
    left: bool = False
    """Whether the caller hung up while the answer was being sent."""
    error: str = ""
    """The code of what went wrong."""
    arrived_ns: int = 0
    """When it arrived, by the wall clock; told where it is traced."""
    begun: Begun | None = None
    """Its place in a trace that is kept; who has no trace need not fill in `about`."""
    about: dict[str, Value] = field(default_factory=dict)
    """Attributes of its span."""

    @property
    def traced(self) -> bool:
        """Whether `about` will be read."""
        return self.begun is not None

    def through(self, door: str, lane: str, kind: str = "", model: str = "") -> None:
        """Say which way it went, and to which model; the first one named is the one that was asked for."""
        self.door, self.lane = door, lane
        if self.traced and model:
            operation = OPERATIONS.get(kind, kind)
            named = {OPERATION: operation, PROVIDER: "tailrace", REQUEST_MODEL: model}
            self.about = {**named, **self.about, RESPONSE_MODEL: model}

    @property
    def outcome(self) -> str:
        """done, refused, failed or left."""
        if self.left or self.status == LEFT:
            return "left"
        if self.error:
            return "refused" if self.status in {429, 503} else "failed"
        return "done" if self.status < 400 else "failed"
