"""What-if against what came: `make bench-whatif`, some seven minutes.

A box of the product with scripted service times behind a real server; calibrated at one door and one rate,
then predicted, then measured for real with fresh arrivals: another rate, another door, and how much it can
answer at most.
"""

import argparse
import asyncio
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from figures import Figure, keep
from machine import fingerprint

from tailrace.bench.generator import Sender
from tailrace.bench.scenario import LoadTable
from tailrace.bench.steady import Settled
from tailrace.bench.verdict import load_of
from tailrace.cli.foretelling import Measured, foretell, open_measured
from tailrace.latency.exchange import now_ns
from tailrace.latency.pool import Pool
from tailrace.latency.prediction import Score, score
from tailrace.latency.runs import Head, Load, Run, RunWriter, open_run
from tailrace.latency.runs.summary import steady
from tailrace.latency.targets.doors import door
from tailrace.simulate.levers import parse
from tailrace.wire.record import Row

A_MS, B_MS, SPREAD = 12.0, 18.0, 0.3
BASE_USE = 0.5
"""Use of the lane while it is calibrated."""
CASES: dict[str, tuple[str, float]] = {
    "limited, 1.5 x the rate": ("limited", 1.5),
    "limited to batched, twice the rate": ("batched", 2.0),
    "alone to queue, 1.4 x the rate": ("queue", 1.4),
    "alone to queue, 1.65 x the rate": ("queue", 1.65),
}
TEXTS = [f"review number {number}" for number in range(4000)]
SATURATION_TARGET = 0.10


@contextmanager
def box(slow: float) -> Iterator[str]:
    """The scripted box's API, its service times `slow` times as long."""
    command = [sys.executable, str(Path(__file__).parent / "scripted_box.py")]
    command += [str(A_MS * slow), str(B_MS * slow), str(SPREAD), "lane.waiting_max=500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip() + "/api"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


async def load(url: str, name: str, table: LoadTable) -> tuple[list[Row], Load]:
    """The load at one door: its rows, and how it was sent. Every run asks the same texts."""
    target = door(url, name, TEXTS)
    rows: list[Row] = []
    async with Pool() as pool:
        await pool.warm(url, 8)
        sender = Sender(pool, target, table, rows.append, now_ns(), pairs=str)
        blocks = [await sender.block(0)]
    return rows, load_of(table, blocks, rows, Settled(0.0, None))


def run(url: str, root: Path, name: str, rate: float, seconds: float, seed: int) -> Run:
    """One measured run, kept."""
    print(f"measuring {name} at {rate:.1f}/s for {seconds:.0f} s", flush=True)
    table = LoadTable.model_validate(
        {
            "kind": "poisson",
            "rate": rate,
            "seed": seed,
            "length": f"{seconds:g}s",
            "cold": "2req",
            "warm_up": "5%",
            "timeout": "30s",
        }
    )
    rows, lived = asyncio.run(load(url, name, table))
    now = datetime.now(UTC)
    folder = root / f"{name}-{seed}"
    head = Head(
        id=folder.name,
        kind="bench",
        scenario="whatif",
        target=url,
        began=now,
        best_before=(now + timedelta(days=30)).date(),
        plan={"load": table.model_dump(mode="json")},
    )
    with RunWriter(folder, head) as writer:
        writer.append(*rows)
        writer.finish(load=lived)
    return open_run(folder)


def answered_per_s(found: Run) -> float:
    """Answers a second while more was offered than could be answered."""
    ends = sorted(r.at_s + r.wall_ms / 1000 for r in steady(found.rows) if r.outcome == "ok")
    skip = len(ends) // 10
    return (len(ends) - 2 * skip - 1) / (ends[-skip - 1] - ends[skip])


def judged(name: str, found: Score) -> list[Figure]:
    """The figures that were promised, of one prediction."""
    figures = []
    for one in found.figures:
        if one.figure in {"p99", "tail"}:
            continue
        share = one.figure in {"refused", "cut off"}
        unit = "points" if share else "%"
        told = "range" if one.off is None else f"{one.off * 100:+.1f} {unit}"
        wide = f"band {one.expected.low:.3g} to {one.expected.high:.3g}, came {one.measured:.3g}"
        figures.append(
            Figure(
                f"{name}: {one.figure}",
                f"within {one.allowed * 100:.0f} {unit}, or the noise band",
                f"{told}; {wide}",
                one.good,
                one.model_dump(),
            )
        )
    return figures


def saturation(opened: Measured, url: str, root: Path, name: str, seconds: float) -> Figure:
    """How much a door answers at most: foretold, and as it came."""
    forecast = opened.forecast(parse([f"door={name}"]))
    expected = forecast.capacity_per_s(forecast.bounds[0]) or 0.0
    came = answered_per_s(run(url, root, name, 1.8 * expected, seconds, 90))
    off = expected / came - 1.0
    return Figure(
        f"saturation, {name}",
        f"within {SATURATION_TARGET:.0%}",
        f"{off:+.1%}; foretold {expected:.1f}/s, came {came:.1f}/s",
        abs(off) <= SATURATION_TARGET,
        {"foretold": expected, "came": came},
    )


def main() -> None:
    """Calibrate, foretell, measure, judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measured run")
    parser.add_argument(
        "--slow",
        type=float,
        default=1.0,
        help="service times so many times as long: a busy machine",
    )
    parser.add_argument("--case", default="", help="only the cases with this word in their name")
    options = parser.parse_args()
    cases = {name: case for name, case in CASES.items() if options.case in name}
    machine: dict[str, Any] = fingerprint()
    rate = BASE_USE / ((A_MS + B_MS) * options.slow / 1000)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as scratch, box(options.slow) as url:
        root = Path(scratch)
        base = run(url, root, "limited", rate, options.seconds, 1)
        ladder = run(url, root, "batched", 1.9 * rate, options.seconds / 2, 2)
        opened = open_measured(base.path, ladder=ladder.path)
        foretold = {}
        for case, (name, factor) in cases.items():
            levers = [f"rate={factor:g}x"] + ([f"door={name}"] if name != "limited" else [])
            foretold[case] = foretell(opened, parse(levers))
            print(f"foretold {case}: use {foretold[case].use or 0:.0%}", flush=True)
        for number, (case, (name, factor)) in enumerate(cases.items()):
            came = run(url, root, name, rate * factor, options.seconds, 10 + number)
            figures += judged(case, score(foretold[case], came))
        for name in ("limited", "batched") if not options.case else ():
            figures.append(saturation(opened, url, root, name, options.seconds / 3))
    title = "What-if against later runs: fresh arrivals, another door, another rate"
    arguments = f' ARGS="{shlex.join(sys.argv[1:])}"' if sys.argv[1:] else ""
    name = "-".join(["whatif", *options.case.split()])
    keep(name, title, figures, machine, f"make bench-whatif{arguments}")


if __name__ == "__main__":
    main()
