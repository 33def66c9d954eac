"""Whether a model answers: by its last real answer, and by a tiny run where nobody has asked for long.

Looking never waits and starts at most one run. Knows no HTTP.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from tailrace.core.clock import Clock
from tailrace.core.events import Event, RunFinished
from tailrace.core.lane import Lane

log = logging.getLogger(__name__)

FAILED_RUNS_UNREADY = 3


class Readiness:
    """The state of one lane's model. `canary` is one tiny run of it.

    An answer counts as recent for `recent_s`; a run that takes longer than `stuck_s` is taken to hang.
    """

    def __init__(
        self,
        lane: Lane,
        canary: Callable[[], Awaitable[Any]],
        clock: Clock,
        *,
        recent_s: float,
        stuck_s: float,
    ) -> None:
        self._lane = lane
        self._canary = canary
        self._clock = clock
        self._recent_s = recent_s
        self._stuck_s = stuck_s
        self._answered = clock.now()
        self._failed_runs = 0
        self._trying: asyncio.Task[None] | None = None
        self._tried_at = 0.0
        self.canaries = 0
        """Tiny runs started so far."""

    def __call__(self, event: Event) -> None:
        """Take in one event of any lane."""
        if isinstance(event, RunFinished) and event.lane == self._lane.name:
            self._learn(failed=event.failed)

    def why_not(self) -> str:
        """Why the model is not ready; empty where it is. May start the tiny run, never waits for it."""
        name, now = self._lane.name, self._clock.now()
        if self._lane.draining:
            return "The server is shutting down."
        if self._failed_runs >= FAILED_RUNS_UNREADY:
            self._try(now)
            return f"The last {self._failed_runs} runs of {name} failed."
        longest_s = self._lane.longest_run_s()
        if self._trying is not None:
            longest_s = max(longest_s, now - self._tried_at)
        if longest_s > self._stuck_s:
            return f"A run of {name} has not come back for {longest_s:.0f} s."
        if now - self._answered > self._recent_s and longest_s == 0.0:
            self._try(now)
        return ""

    def _learn(self, *, failed: bool) -> None:
        self._failed_runs = self._failed_runs + 1 if failed else 0
        if not failed:
            self._answered = self._clock.now()

    def _try(self, now: float) -> None:
        if self._trying is None:
            self.canaries += 1
            self._tried_at = now
            self._trying = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            await self._canary()
        except Exception as error:  # noqa: BLE001 - whatever it is, the model did not answer
            log.warning("the tiny run of %s failed: %s", self._lane.name, error)
            self._learn(failed=True)
        else:
            self._learn(failed=False)
        finally:
            self._trying = None
