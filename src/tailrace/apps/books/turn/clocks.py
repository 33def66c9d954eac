"""The clocks of a turn, all our own: input, generation, total, and the gap between two pieces.

A client library's timeout is one per read, which a slow stream never meets. Knows nothing of HTTP.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from pydantic import Field

from tailrace.core.errors import ModelError
from tailrace.serve.settings import Settings

T = TypeVar("T")


class ClockSettings(Settings):
    """The longest each stage of a turn may take, in seconds."""

    input_s: float = Field(5.0, gt=0)
    """From asking the language model to the first piece of its answer, waiting in line included."""
    generation_s: float = Field(20.0, gt=0)
    """From that first piece to the last."""
    total_s: float = Field(30.0, gt=0)
    """The whole turn: both calls, the search, and any second try."""
    idle_s: float = Field(8.0, gt=0)
    """From one piece to the next."""


class StageTimeout(ModelError):
    """A stage of the turn took too long."""

    code = "turn-timeout"

    def __init__(self, message: str | None = None, *, stage: str = "total") -> None:
        super().__init__(message)
        self.stage = stage
        """input, generation, idle or total."""


class TurnClocks:
    """The clocks of one turn; the total runs from here."""

    def __init__(self, settings: ClockSettings) -> None:
        self.settings = settings
        self.end = _now() + settings.total_s

    @property
    def left_s(self) -> float:
        """What remains of the total."""
        return max(0.0, self.end - _now())

    def call(self) -> "CallClocks":
        """The clocks of one call of the language model, from now."""
        return CallClocks(self)


class CallClocks:
    """Bounds each wait of one call; tell it of every piece."""

    def __init__(self, turn: TurnClocks) -> None:
        self._turn = turn
        self._ends = {"input": _now() + turn.settings.input_s, "total": turn.end}

    @property
    def begun(self) -> bool:
        """Whether a first piece has come."""
        return "generation" in self._ends

    def piece(self) -> None:
        """A piece has come: the first one ends the input, each one the gap."""
        settings = self._turn.settings
        if self._ends.pop("input", None) is not None:
            self._ends["generation"] = _now() + settings.generation_s
        self._ends["idle"] = _now() + settings.idle_s

    async def wait(self, coming: Awaitable[T]) -> T:
        """What `coming` gives.

        Raises:
            StageTimeout: a clock ran out before.

        """
        first = min(self._ends, key=self._ends.__getitem__)
        try:
            async with asyncio.timeout_at(self._ends[first]) as timeout:
                return await coming
        except TimeoutError:
            if not timeout.expired():
                raise
            seconds: float = getattr(self._turn.settings, f"{first}_s")
            why = f"The stage {first} took longer than {seconds:g} s."
            raise StageTimeout(why, stage=first) from None


def _now() -> float:
    return asyncio.get_running_loop().time()
