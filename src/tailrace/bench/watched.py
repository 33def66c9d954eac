"""A scenario measured again and again, for `tailrace watch`: every case is a series of its own."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tailrace.bench.errors import NoAnswer
from tailrace.bench.scenario import Scenario, cases
from tailrace.bench.session import Progress, run_scenario
from tailrace.latency.watch.port import Taken


@dataclass(frozen=True)
class Watched:
    """The cases of one scenario."""

    scenario: Scenario
    remote: bool = False

    async def measure(self, root: Path, began: datetime) -> list[Taken]:  # noqa: ARG002 - the session's own clock
        """One session; a case whose run cannot be believed is a gap."""
        try:
            outcome = await run_scenario(self.scenario, root, _untold, remote=self.remote)
        except NoAnswer as none:
            return [Taken(case.name, gap=str(none)) for case in cases(self.scenario)]
        if outcome.stopped:
            raise asyncio.CancelledError
        return [
            Taken(summary.case, path, summary)
            if summary.validity.valid
            else Taken(summary.case, path, gap="; ".join(summary.validity.reasons))
            for path, summary in outcome.runs
        ]


def _untold(progress: Progress) -> None:
    """The watch tells rounds, not progress."""
