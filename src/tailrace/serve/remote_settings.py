"""The configuration of models elsewhere, and of who answers in whose place."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from tailrace.models.stages import Timeouts
from tailrace.policies.adaptive import AdaptiveLimit
from tailrace.serve.problems import STATUS
from tailrace.serve.settings import (
    DeadlineFeasibleSettings,
    DoorSettings,
    QueueTimeoutSettings,
    Settings,
    WaitingRoomSettings,
)


class StandInSettings(Settings):
    """Who answers when a model cannot: the same for models here and elsewhere."""

    fallback: str | None = None
    """The name of the offer that answers instead; the answer says so in `X-Fallback`."""
    fallback_on: tuple[str, ...] = (
        "upstream-failed",
        "upstream-timeout",
        "upstream-busy",
        "upstream-paused",
    )
    """After which error codes."""
    space: str | None = None
    """Embeddings: a name for the space the vectors live in. A fallback to another model is refused at start unless both offers name the same space."""  # noqa: E501

    @field_validator("fallback_on")
    @classmethod
    def _known(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(codes) - set(STATUS))
        if unknown:
            raise ValueError(f"no such error codes: {', '.join(unknown)}")
        return codes


class TimeoutSettings(Settings):
    """The longest each stage of a request upstream may take; the error names the stage."""

    connect_s: float = Field(5.0, gt=0)
    """Finding the address, connecting and TLS together."""
    first_byte_s: float = Field(60.0, gt=0)
    """From sending the request to the first byte of the answer's body."""
    between_bytes_s: float = Field(30.0, gt=0)
    """From one piece of the answer to the next; while our caller does not read, it does not count."""
    total_s: float = Field(600.0, gt=0)
    """All of it."""

    def timeouts(self) -> Timeouts:
        """The client's view of it."""
        return Timeouts(self.connect_s, self.first_byte_s, self.between_bytes_s, self.total_s)


class AdaptiveSettings(Settings):
    """Slots found from how long runs take: as many at once as do not wait for each other upstream."""

    floor: int = Field(1, ge=1)
    """Never fewer."""
    ceiling: int = Field(64, ge=1)
    """Never more."""

    @model_validator(mode="after")
    def _in_order(self) -> "AdaptiveSettings":
        if self.floor > self.ceiling:
            raise ValueError("the floor is above the ceiling")
        return self

    def limit(self) -> AdaptiveLimit:
        """The limit itself."""
        return AdaptiveLimit(self.floor, self.ceiling)


class RemoteOffer(StandInSettings):
    """One model elsewhere on offer, behind an OpenAI-compatible API."""

    name: str = Field(min_length=1)
    """The name clients ask for."""
    kind: Literal["remote-embedding", "remote-chat"]
    """What it does."""
    url: str
    """The base of the API, for instance `https://llm.example/v1`; paths such as `/embeddings` follow it."""
    model: str = Field(min_length=1)
    """The name the upstream knows it by."""
    key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that holds the API key; it is read for each request and kept nowhere."""
    aliases: tuple[str, ...] = ()
    """Other names clients may use."""
    slots: int | AdaptiveSettings = AdaptiveSettings()
    """Requests upstream at once: a number, or a table with `floor` and `ceiling` to have it found."""
    items_max: int = Field(32, ge=1)
    """Embeddings: the most texts in one request upstream."""
    window_ms: float = Field(2.0, ge=0)
    """Embeddings: how long a request upstream waits for more texts to take along."""
    tokens_max: int = Field(8192, ge=1)
    """Embeddings: how many tokens the model reads, as told to clients that ask; nothing is cut here."""
    idle_s: float = Field(4.0, ge=0)
    """How long an idle connection is kept; shorter than the upstream's own limit."""
    pause_wait_s: float = Field(1.0, ge=0)
    """A pause that the upstream asks for is waited out if it is no longer than this; else new work is refused until it ends."""  # noqa: E501
    timeouts: TimeoutSettings = TimeoutSettings()
    """Bounds by stage."""
    door: DoorSettings = DoorSettings(
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=256),
            QueueTimeoutSettings(kind="queue-timeout", seconds=30.0),
            DeadlineFeasibleSettings(kind="deadline-feasible"),
        ),
    )
    """Who is let in."""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("an http:// or https:// address is needed")
        if parts.username or parts.password or parts.query:
            raise ValueError("no user, password or query here; the key comes from `key_env`")
        return url.rstrip("/")

    @field_validator("slots")
    @classmethod
    def _at_least_one(cls, slots: int | AdaptiveSettings) -> int | AdaptiveSettings:
        if isinstance(slots, int) and slots < 1:
            raise ValueError("at least one slot")
        return slots

    @property
    def slots_max(self) -> int:
        """The most requests upstream at once, ever."""
        return self.slots if isinstance(self.slots, int) else self.slots.ceiling
