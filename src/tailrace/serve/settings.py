"""Typed configuration of what every app shares: the server, lanes, doors and their policies.

Frozen, unknown keys forbidden, all mistakes reported at once with their paths. Order of precedence:
command line, environment (TAILRACE__LANE__BATCH__WINDOW_MS=10), file, default. Core never sees these.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tailrace.core.admission import AllOf, Policy
from tailrace.core.batch import BatchRule
from tailrace.policies.deadline_feasible import DeadlineFeasible
from tailrace.policies.memory_pressure import MemoryPressurePolicy
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.rate_limit import RateLimit
from tailrace.policies.waiting_room import WaitingRoom
from tailrace.wire.tracing import Choice

ENV_PREFIX = "TAILRACE__"
SECRET_NAMES = re.compile(r"key|secret|token$|password|authorization", re.IGNORECASE)
"""Settings of such names are never repeated in a message."""


class BadConfiguration(Exception):
    """The configuration cannot be used; `mistakes` are (path, what is wrong)."""

    def __init__(self, mistakes: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {what}" for path, what in mistakes))
        self.mistakes = mistakes


class Settings(BaseModel):
    """What every table of the configuration has in common."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class ServerSettings(Settings):
    """Where the server listens and what it takes in."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(8000, ge=0, le=65535)
    """The port to listen on; 0 takes any free one."""
    body_max_bytes: int = Field(1 << 20, ge=1024)
    """The largest request body."""
    streams_max: int = Field(64, ge=1)
    """The most event streams (open pages) at once."""
    drain_grace_s: float = Field(20.0, ge=0)
    """How long work that was taken in may go on after SIGTERM."""


class TracingSettings(Settings):
    """Spans of every request and of its parts (the extra `otel`); off where no collector is named."""

    endpoint: str | None = Field(None, pattern=r"^https?://")
    """An OTLP/HTTP collector, `http://127.0.0.1:4318`; by default what OTEL_EXPORTER_OTLP_ENDPOINT says."""
    sample: float | None = Field(None, ge=0, le=1)
    """The share of new traces that are kept, where a caller does not say; by default what OTEL_TRACES_SAMPLER says, else all."""  # noqa: E501
    queue_max: int = Field(2048, ge=1)
    """The most requests whose spans wait to be sent; then the oldest are dropped."""
    send_max_s: float = Field(2.0, gt=0)
    """The longest one sending may take, and the end of the server with it."""

    def choice(self) -> Choice:
        """The same for who sends them."""
        return Choice(self.endpoint, self.sample, self.queue_max, self.send_max_s)


class BatchSettings(Settings):
    """How work of doors with `batch = true` shares runs."""

    items_max: int = Field(8, ge=1)
    """The most pieces of work in one run."""
    window_ms: float = Field(25.0, ge=0)
    """How long an idle model waits for company."""

    def rule(self) -> BatchRule:
        """The core's view of it."""
        return BatchRule(items_max=self.items_max, window_s=self.window_ms / 1000)


class LaneSettings(Settings):
    """The one lane in front of the model."""

    slots: int = Field(1, ge=1)
    """Runs on the model at once."""
    waiting_max: int = Field(200, ge=1)
    """The most that wait, whatever the doors say."""
    run_max_s: float = Field(120.0, gt=0)
    """The longest a caller waits for a run that has begun."""
    batch: BatchSettings = BatchSettings()
    """Shared runs."""


class WaitingRoomSettings(Settings):
    """Policy: a bounded waiting room."""

    kind: Literal["waiting-room"]
    seats: int = Field(ge=0)
    """How many may wait; who finds a free slot needs no seat."""

    def policy(self) -> Policy:
        """The policy itself."""
        return WaitingRoom(self.seats)


class QueueTimeoutSettings(Settings):
    """Policy: the longest wait for a turn."""

    kind: Literal["queue-timeout"]
    seconds: float = Field(gt=0)
    """Work that has not started by then is answered 503 then."""

    def policy(self) -> Policy:
        """The policy itself."""
        return QueueTimeoutPolicy(self.seconds)


class DeadlineFeasibleSettings(Settings):
    """Policy: refuse what cannot be ready by the caller's X-Deadline-Ms."""

    kind: Literal["deadline-feasible"]
    slack: float = Field(1.0, gt=0)
    """Widens the estimate; 1.2 refuses what would be late if everything took a fifth longer."""

    def policy(self) -> Policy:
        """The policy itself."""
        return DeadlineFeasible(self.slack)


class RateLimitSettings(Settings):
    """Policy: an allowance for each caller (X-API-Key, else the address)."""

    kind: Literal["rate-limit"]
    per_second: float = Field(gt=0)
    """Asks a second, in the long run."""
    burst: int = Field(1, ge=1)
    """Asks at once."""
    callers_max: int = Field(10_000, ge=1)
    """The most callers remembered."""

    def policy(self) -> Policy:
        """The policy itself."""
        return RateLimit(self.per_second, self.burst, self.callers_max)


class MemoryPressureSettings(Settings):
    """Policy: refuse while memory is short."""

    kind: Literal["memory-pressure"]
    used_max: float = Field(0.95, gt=0, le=1)
    """The share of memory in use above which new work is refused."""

    def policy(self) -> Policy:
        """The policy itself."""
        return MemoryPressurePolicy(self.used_max)


PolicySettings = Annotated[
    WaitingRoomSettings
    | QueueTimeoutSettings
    | DeadlineFeasibleSettings
    | RateLimitSettings
    | MemoryPressureSettings,
    Field(discriminator="kind"),
]


class DoorSettings(Settings):
    """One door: how work is let in, and whether it shares runs."""

    batch: bool = False
    """Whether this door's work may share a run."""
    policies: tuple[PolicySettings, ...] = ()
    """Who may enter; all must agree."""

    def admission(self) -> AllOf:
        """The policies as one."""
        return AllOf([settings.policy() for settings in self.policies])

    def seats(self, otherwise: int) -> int:
        """The smallest waiting room among the policies."""
        rooms = [p.seats for p in self.policies if isinstance(p, WaitingRoomSettings)]
        return min(rooms, default=otherwise)


S = TypeVar("S", bound=Settings)


def load(
    kind: type[S],
    file: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[str, Any] | None = None,
) -> S:
    """Settings of `kind` from a file, the environment and overrides by dotted path.

    Raises:
        BadConfiguration: with every mistake and its path.

    """
    tree: dict[str, Any] = {}
    if file is not None:
        try:
            tree = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadConfiguration([(str(file), "there is no such file")]) from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
            raise BadConfiguration([(str(file), str(fault))]) from fault
    mistakes: list[tuple[str, str]] = []
    for path, value in [*_from_environment(environ, mistakes), *_from_options(overrides or {})]:
        try:
            _put(tree, path, value)
        except BadConfiguration as bad:
            mistakes += bad.mistakes
    try:
        made = kind.model_validate(tree)
    except ValidationError as fault:
        mistakes += [(_path(error["loc"]), _what(error)) for error in fault.errors()]
        raise BadConfiguration(mistakes) from fault
    if mistakes:
        raise BadConfiguration(mistakes)
    return made


def _from_environment(
    environ: Mapping[str, str], mistakes: list[tuple[str, str]]
) -> Iterator[tuple[list[str], Any]]:
    for name, value in environ.items():
        if name.startswith(ENV_PREFIX):
            yield name.removeprefix(ENV_PREFIX).lower().split("__"), _literal(value)
        elif name.startswith(ENV_PREFIX[:-1]) and "__" in name:
            meant = ENV_PREFIX + name.removeprefix(ENV_PREFIX[:-1])
            mistakes.append((name, f"is no setting; two underscores are needed: {meant}"))


def _from_options(overrides: Mapping[str, Any]) -> Iterator[tuple[list[str], Any]]:
    for dotted, value in overrides.items():
        if value is not None:
            yield dotted.split("."), value


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        below = tree.setdefault(name, {})
        if not isinstance(below, dict):
            raise BadConfiguration([(".".join(path), f"`{name}` is a value, not a table")])
        tree = below
    tree[path[-1]] = value


def _literal(text: str) -> Any:
    """A value from the environment: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _path(location: tuple[str | int, ...]) -> str:
    return ".".join(str(step) for step in location) or "(top)"


def _what(error: Any) -> str:
    given = ""
    if error["type"] not in {"missing", "extra_forbidden"}:
        given = f" (given: {_shown(error['loc'], error['input'])})"
    message = "unknown setting" if error["type"] == "extra_forbidden" else error["msg"]
    return f"{_unseen(message)}{given}"


def _shown(location: tuple[str | int, ...], value: Any) -> str:
    """A value as a message may repeat it: no table, which may hold anything, and no secret."""
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "a list"
    if any(SECRET_NAMES.search(str(step)) for step in location):
        return "***"
    return _unseen(repr(value))


def _unseen(text: str) -> str:
    """Text without users, passwords and queries of addresses, and without what looks like a key."""
    text = re.sub(r"//[^/@\s]*@", "//***@", text)
    text = re.sub(r"(://[^\s'\"?]*)\?[^\s'\"]*", r"\1?***", text)
    return re.sub(r"\b(?:sk|hf|pk)[-_][\w-]{8,}", "***", text)
