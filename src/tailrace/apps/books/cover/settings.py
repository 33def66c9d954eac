"""The configuration of covers: what reads them, what a model elsewhere may be asked, and how often."""

from typing import Literal

from pydantic import Field

from tailrace.serve.remote_settings import RemoteOffer, TimeoutSettings
from tailrace.serve.settings import (
    DeadlineFeasibleSettings,
    DoorSettings,
    QueueTimeoutSettings,
    Settings,
    WaitingRoomSettings,
)
from tailrace.wire.reasoning import Asked, Provider

VLM_LANE = "vlm"


class VlmSettings(Settings):
    """A model elsewhere that looks at the covers which reading did not tell."""

    url: str | None = None
    """The base of an OpenAI-compatible API, such as `https://vlm.example/v1`; by default nobody is asked."""
    model: str = "default"
    """The name the API knows it by."""
    key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that holds the API key."""
    provider: Provider = "openai"
    """Whose switch for reasoning the API takes."""
    reasoning: Asked = "default"
    """What to ask of a reasoning model: `off`, `low`, `high`, or nothing by `default`."""
    structured: bool = True
    """Whether the API takes a JSON schema as `response_format`."""
    per_minute: int = Field(30, ge=0, le=10_000)
    """The most calls in any minute; a cover beyond them is `needs_input`, and says so."""
    slots: int = Field(2, ge=1)
    """Calls at once."""
    seats: int = Field(4, ge=0)
    """Calls that may wait."""
    total_s: float = Field(20.0, gt=0)
    """The longest one call may take, waiting in line included."""
    side_max: int = Field(1024, ge=64, le=1600)
    """Pixels of the longer side of the picture that is sent."""

    def offer(self, url: str) -> RemoteOffer:
        """The model as the house opens it."""
        room = WaitingRoomSettings(kind="waiting-room", seats=self.seats)
        return RemoteOffer(
            name=VLM_LANE,
            kind="remote-chat",
            url=url,
            model=self.model,
            key_env=self.key_env,
            slots=self.slots,
            timeouts=TimeoutSettings(first_byte_s=self.total_s, total_s=self.total_s),
            door=DoorSettings(policies=(room,)),
        )


class CoverSettings(Settings):
    """Covers: a picture in, its book out."""

    ocr: Literal["auto", "off"] = "auto"
    """`auto` reads covers here where the extra `covers` and tesseract are installed; `off` leaves them to the model elsewhere."""  # noqa: E501
    tesseract: str = Field("tesseract", min_length=1)
    """The program."""
    languages: str = Field("kor+eng", pattern=r"^[a-zA-Z_]+(\+[a-zA-Z_]+)*$")
    """What it reads; the data of each must be installed."""
    body_max_bytes: int = Field(10 << 20, ge=1024)
    """The largest picture, in bytes."""
    pixels_max: int = Field(50_000_000, ge=1024)
    """The largest picture, in pixels; no more than this is ever decoded."""
    slots: int = Field(1, ge=1)
    """Pictures that are read at once, each on a core of its own."""
    read_s: float = Field(10.0, gt=0)
    """The longest that one picture is read; what was read by then is looked up."""
    door: DoorSettings = DoorSettings(
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=8),
            QueueTimeoutSettings(kind="queue-timeout", seconds=15.0),
            DeadlineFeasibleSettings(kind="deadline-feasible", slack=1.1),
        ),
    )
    """Who is let in."""
    vlm: VlmSettings = VlmSettings()
    """Who is asked next."""
