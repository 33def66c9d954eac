"""What of a request becomes a span: names, data, and the trace that is passed on. Knows no library.

Attribute names are those of the OpenTelemetry semantic conventions where they have one; ours begin with
`tailrace.`. A text, a query string or a key is never among them.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol

log = logging.getLogger(__name__)

Value = str | bool | int | float | Sequence[str]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
REQUEST_STREAM = "gen_ai.request.stream"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"
URL_PATH = "url.path"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"

PART = "tailrace.part"
PART_MS = "tailrace.part.ms"
SOURCE = "tailrace.source"
OTHER_MS = "tailrace.other.ms"
"""On a whole whose parts overlap: the residual below zero, which no span can show."""
DOOR = "tailrace.door"
LANE = "tailrace.lane"
OUTCOME = "tailrace.outcome"
BATCH_SIZE = "tailrace.batch_size"
PHASE = "tailrace.phase"

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

PASSED_ON: ContextVar[Mapping[str, str]] = ContextVar("PASSED_ON")
"""The headers that tie a request upstream to the trace of the request being served."""


class TracingUnavailable(Exception):
    """Traces are wanted and cannot be made: one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a whole: its name, how long it took, and what else is known of it."""

    name: str
    seconds: float
    about: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finished:
    """A request that is over. Its parts follow one another and add up to it."""

    name: str
    start_ns: int
    """By the wall clock."""
    parts: Sequence[Piece]
    about: Mapping[str, Value]
    failed: bool = False
    side: Literal["server", "client", "worker"] = "server"
    """Who had it: who answered, who asked, or who worked on it afterwards."""
    seconds: float | None = None
    """The whole, where no parts are known of it."""


class Begun(Protocol):
    """A request under way in a trace."""

    @property
    def sampled(self) -> bool:
        """Whether anybody will see it."""

    @property
    def trace(self) -> str:
        """The id of its trace, 32 hex digits."""

    @property
    def headers(self) -> Mapping[str, str]:
        """`traceparent`, and `tracestate` where there is one: what a request made for it carries."""


class Tracing(Protocol):
    """Where spans go. None of its methods waits for the network but `close`."""

    def begin(self, headers: Mapping[str, str]) -> Begun:
        """Take up the trace that `headers` names, else begin one."""

    def end(self, begun: Begun, finished: Finished) -> None:
        """Hand a request over; dropped where too many wait to be sent."""

    def lost(self) -> int:
        """How many requests were dropped or could not be sent."""

    def close(self) -> None:
        """Send what waits, for a bounded time, and give the rest up."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Where spans go and how many."""

    endpoint: str | None = None
    """The collector's base address; None: what the environment says."""
    sample: float | None = None
    """The share of new traces; None: what the environment says, else all."""
    queue_max: int = 2048
    """Requests that wait to be sent."""
    send_max_s: float = 2.0
    """The longest one sending may take, and the end of the process with it."""


def wanted(choice: Choice) -> bool:
    """Whether spans are asked for, by the choice or by the environment of OpenTelemetry."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if choice.endpoint:
        return True
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(os.environ.get(name, "").strip() for name in ENDPOINTS)


def open_tracing(choice: Choice, service: str) -> Tracing | None:
    """Where spans go, or None where nobody asked for them; only then is the library read.

    Raises:
        TracingUnavailable: `choice` asks for them and they cannot be made. Where only the environment does,
            that is a warning: it may be meant for another program.

    """
    if not wanted(choice):
        return None
    try:
        from tailrace.wire.otlp import Otlp  # noqa: PLC0415 - the extra is read where it is used
    except ImportError as missing:
        why = f"traces need the extra otel ({missing.name} is not there): pip install 'tailrace[otel]'"
        if choice.endpoint:
            raise TracingUnavailable(why) from None
        log.warning("no traces are sent: %s", why)
        return None
    return Otlp(choice, service)
