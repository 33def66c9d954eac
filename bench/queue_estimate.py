"""The queue estimated without a server's figure beside the one that it declares: `make bench-queue`.

Starts a review box of its own, offers its limited door Poisson arrivals at a use of its lane that is measured
just before, hides everything that the box declares from the estimator, and compares.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from figures import Figure, keep
from machine import fingerprint
from servers import Server, running

from tailrace.bench.scenario import Scenario
from tailrace.bench.session import run_scenario
from tailrace.latency.queue_estimate import Undecided, estimate_queue
from tailrace.latency.runs import open_run
from tailrace.wire.record import Part, Row

USES = (0.5, 0.75)
WITHIN = 0.10
LIMITED = [
    {"kind": "waiting-room", "seats": 64},
    {"kind": "queue-timeout", "seconds": 60},
]
"""Nobody is refused here: what is looked at is the queue."""
TOPICS = {"taste": "음식의 맛", "price": "가격과 가성비", "kindness": "직원의 친절과 응대"}
"""Fewer than the box's own, so that many requests fit into a few minutes."""


async def measured(server: Server, **load: Any) -> list[Row]:
    """The answered steady rows of a load at the limited door."""
    scenario = Scenario.model_validate(
        {
            "name": "queue",
            "question": "How long is the queue?",
            "target": {"protocol": "door", "url": f"{server.url}/api", "door": "limited"},
            "load": load,
        }
    )
    with tempfile.TemporaryDirectory() as scratch:
        outcome = await run_scenario(scenario, Path(scratch), lambda _: None)
        (path, summary), *_ = outcome.runs
        print("; ".join(summary.validity.reasons) or "valid", *summary.notes, sep="; ")
        return [row for row in open_run(path).rows if row.phase != "cold"]


def on_lane_ms(row: Row) -> float:
    """How long the row held the lane, as the server says."""
    return sum(row.parts[name].ms for name in ("tokenize", "infer") if name in row.parts)


def untold(row: Row) -> Row:
    """The row as a client sees it of a server that declares nothing."""
    declared = [name for name, part in row.parts.items() if part.source == "declared"]
    hidden = sum(row.parts[name].ms for name in declared)
    parts = {name: part for name, part in row.parts.items() if name not in declared}
    parts["other"] = Part(parts["other"].ms + hidden, "residual")
    detail = {name: value for name, value in row.detail.items() if name != "declared"}
    return replace(row, parts=parts, detail=detail)


async def at_use(server: Server, use: float, n: int) -> list[Figure]:
    """One load, and the estimate beside the declaration."""
    idle = await measured(server, kind="closed", clients=1, length="40req", cold="3req")
    rate = use / (median(on_lane_ms(row) for row in idle) / 1000)
    rows = await measured(server, kind="poisson", rate=rate, length=f"{n}req", cold="3req")
    return compared(rows, use)


def compared(rows: Sequence[Row], use: float) -> list[Figure]:
    """Mean and p95, estimated over declared."""
    estimate = estimate_queue([untold(row) for row in rows])
    if isinstance(estimate, Undecided):
        return [Figure(f"use {use:.0%}", "decidable", str(estimate.why), False, {})]
    answered = [place for place, row in enumerate(rows) if row.outcome == "ok"]
    true = [rows[place].parts["queue"].ms for place in answered]
    found = [estimate.rows[place].parts["queue"].ms for place in answered]
    span_s = max(row.at_s for row in rows) - min(row.at_s for row in rows)
    used = sum(on_lane_ms(row) for row in rows) / 1000 / span_s
    inside = fmean(
        float(part.low <= ms <= part.high)
        for place, ms in zip(answered, true, strict=True)
        if (part := estimate.rows[place].parts["queue"]).low is not None and part.high is not None
    )
    about = {"use": used, "n": len(answered), "alone": estimate.alone, "said": str(estimate)}
    figures = [
        _beside(f"mean queue at {use:.0%} use", fmean(found), fmean(true), about),
        _beside(
            f"p95 queue at {use:.0%} use",
            float(np.quantile(found, 0.95)),
            float(np.quantile(true, 0.95)),
            about,
        ),
    ]
    held = f"{inside:.0%} of rows; the lane was {used:.0%} used, {estimate.alone} of {len(rows)} came alone"
    figures.append(
        Figure(f"declared queue within its row's interval at {use:.0%} use", "told", held, True, {})
    )
    return figures


def _beside(name: str, found: float, true: float, about: dict[str, Any]) -> Figure:
    off = found / true - 1
    seen = f"{off:+.1%} (estimated {found:.1f} ms, declared {true:.1f} ms)"
    numbers = {"estimated_ms": found, "declared_ms": true, **about}
    return Figure(name, f"within {WITHIN:.0%}", seen, abs(off) <= WITHIN, numbers)


async def compare(n: int) -> list[Figure]:
    """Every use, on one box."""
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        topics = Path(scratch) / "topics.json"
        topics.write_text(json.dumps(TOPICS), encoding="utf-8")
        async with running(
            "serve",
            doors__limited__policies=LIMITED,
            naive__enabled=False,
            cache__entries_max=0,
            review__topics=str(topics),
        ) as server:
            for use in USES:
                figures += await at_use(server, use, n)
    return figures


def main() -> None:
    """Measure, and keep the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=600, help="requests at each use")
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = asyncio.run(compare(arguments.n))
    title = "The queue, estimated beside declared"
    keep("queue", title, figures, machine, f"make bench-queue (n {arguments.n})")


if __name__ == "__main__":
    main()
