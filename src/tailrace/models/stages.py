"""The stages of one request to a model elsewhere: each a part of the time, each with its bound.

A stage begins where the one before it ended. Knows no HTTP: it is told what begins.
"""

import asyncio
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Self

from tailrace.core.work import StagedRun
from tailrace.models.upstream_errors import UpstreamTimeout


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The longest each stage may take, in seconds."""

    connect_s: float = 5.0
    """Finding the address, connecting and TLS together."""
    first_byte_s: float = 60.0
    """From sending the request to the first byte of the answer's body."""
    between_bytes_s: float = 30.0
    """From one piece of the answer to the next; time in which our caller does not read is not counted."""
    total_s: float = 600.0
    """All of it."""


BOUND = {
    "dns": "connect_s",
    "connect": "connect_s",
    "tls": "connect_s",
    "send": "first_byte_s",
    "first-byte": "first_byte_s",
    "transfer": "between_bytes_s",
}
"""Which bound a stage runs under; stages of one bound share it."""

CURRENT: ContextVar["Stages"] = ContextVar("CURRENT")
"""The stages of the request that the present task makes."""


class Stages:
    """Where one request is, and until when it may be there."""

    def __init__(self, run: StagedRun, timeouts: Timeouts) -> None:
        self._run = run
        self._timeouts = timeouts
        self._timeout = asyncio.Timeout(None)
        self._began = asyncio.get_running_loop().time()
        self._bound = ""
        self.stage = ""
        self.fresh = False
        """Whether the connection was made for this request."""
        self.heard = False
        """Whether a byte of an answer has come."""
        self.again = False
        """Whether the request was sent once more."""
        self._token: Token[Stages] | None = None

    def begin(self, stage: str) -> None:
        """The stage before has ended; this one is under way."""
        if stage == self.stage:
            return
        if self.stage:
            self._run.mark(self.stage)
        self.stage = stage
        self._run.begin(stage)
        if BOUND[stage] != self._bound:
            self._bound = BOUND[stage]
            self.moved()

    def moved(self) -> None:
        """There was progress: the stage's bound counts anew."""
        now = asyncio.get_running_loop().time()
        seconds: float = getattr(self._timeouts, self._bound)
        self._timeout.reschedule(min(now + seconds, self._began + self._timeouts.total_s))

    def waiting_for_caller(self) -> None:
        """What follows is not the upstream's time: only the whole is bounded."""
        self._timeout.reschedule(self._began + self._timeouts.total_s)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._timeout.reschedule(self._began + self._timeouts.total_s)
        self._token = CURRENT.set(self)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the last stage, however it ended, and name the one that took too long."""
        if self._token is not None:
            CURRENT.reset(self._token)
        if self.stage:
            self._run.mark(self.stage)
        try:
            await self._timeout.__aexit__(type(error) if error else None, error, None)
        except TimeoutError:
            raise self._too_long() from None

    def _too_long(self) -> UpstreamTimeout:
        now = asyncio.get_running_loop().time()
        whole = now - self._began >= self._timeouts.total_s
        name = "total_s" if whole or not self._bound else self._bound
        stage = self.stage or "connect"
        return UpstreamTimeout(
            f"The upstream took too long in the stage {stage}: "
            f"{name} is {getattr(self._timeouts, name):g} s.",
            stage=stage,
        )
