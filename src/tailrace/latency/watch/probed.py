"""A target measured as `tailrace probe` does, each time as a run of its own."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tailrace.latency.pool import Pool
from tailrace.latency.probing import Plan, probe
from tailrace.latency.runs import Head, Load, RunWriter, new_folder
from tailrace.latency.runs.summary import steady
from tailrace.latency.targets.port import Target
from tailrace.latency.watch.port import Taken

SERVED_MIN = 0.5
"""Where a smaller share of the requests was served, the target is down."""
STOPPED = "stopped by hand; what it measured until then is kept"


@dataclass(frozen=True)
class Probed:
    """One case without a name."""

    target: Target
    plan: Plan
    url: str
    """Without credentials and query."""
    model: str | None = None
    tls: ssl.SSLContext | None = None
    best_before_days: int = 30
    told: Mapping[str, Any] = field(default_factory=dict)
    """How it is asked, for the run's folder."""

    async def measure(self, root: Path, began: datetime) -> list[Taken]:
        """One run; a gap where most requests were not served."""
        folder = new_folder(root, "probe", began)
        with RunWriter(folder, self._head(folder, began)) as writer:
            try:
                async with (
                    Pool(tls=self.tls) as pool,
                    aclosing(probe(pool, self.target, self.plan)) as rows,
                ):
                    async for row in rows:
                        writer.append(row)
            except asyncio.CancelledError:
                writer.finish(reasons=[STOPPED])
                raise
            measured = steady(writer.rows)
            served = [row for row in measured if row.outcome == "ok" or row.censored]
            why = []
            if len(served) < SERVED_MIN * len(measured):
                told = (str(row.detail["error"]) for row in measured if "error" in row.detail)
                lost = f"{len(measured) - len(served)} of {len(measured)} requests were not served"
                why = [f"{lost}: {next(told, 'nothing is told of why')}"]
            kind = "one-by-one" if self.plan.rate is None else "open-constant"
            lasted = max((r.at_s + r.wall_ms / 1e3 for r in measured), default=0.0)
            load = Load(kind=kind, duration_s=lasted, offered_per_s=self.plan.rate)
            summary = writer.finish(load=load, reasons=why)
        if not summary.validity.valid:
            return [Taken("", folder, gap=summary.validity.reasons[0])]
        return [Taken("", folder, summary)]

    def _head(self, folder: Path, began: datetime) -> Head:
        return Head(
            id=folder.name,
            kind="watch",
            scenario="probe",
            target=self.url,
            protocol=str(self.told.get("kind") or ""),
            model=self.model,
            began=began,
            best_before=(began + timedelta(days=self.best_before_days)).date(),
            plan=dict(self.told),
        )
