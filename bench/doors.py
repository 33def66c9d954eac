"""What the four doors do with a crowd, measured on the real box: `make bench-doors`.

Starts a box of its own on a free port, sends bounded traffic over loopback, stops it, and writes a
dated result. Every figure is a ratio within this run, or a bound that the design promises.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from machine import fingerprint

from tailrace.bench.crowd import Caller, fire
from tailrace.bench.http import Connection
from tailrace.bench.reviews import reviews
from tailrace.wire.headers import parse_server_timing

JSON = {"Content-Type": "application/json"}
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result: what was promised, what was seen."""

    name: str
    promised: str
    seen: str
    reached: bool
    numbers: dict[str, Any]


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of all are at or under (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


class Texts:
    """Reviews that nobody has asked before: every one misses the cache."""

    def __init__(self) -> None:
        self._used = 0

    def take(self, count: int) -> list[str]:
        """`count` new ones."""
        plain = reviews(count)
        self._used += 1
        return [f"{text} #{self._used}" for text in plain]


@asynccontextmanager
async def box(arguments: list[str]) -> AsyncIterator[str]:
    """A running box; gives its address."""
    command = [sys.executable, "-m", "tailrace.cli.main", "serve", "--port", "0", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stderr is not None
    url = ""
    try:
        async with asyncio.timeout(180):
            while not url:
                line = (await process.stderr.readline()).decode()
                if not line:
                    raise SystemExit("the box did not start")
                if "ready http" in line:
                    url = line.split()[1]
        drain = asyncio.create_task(process.stderr.read())
        await asyncio.sleep(3.0)  # the naive child is measured first
        yield url
        drain.cancel()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def post(url: str, path: str, text: str, headers: dict[str, str] | None = None) -> Any:
    """One request on a connection of its own."""
    connection = await Connection.open(url)
    try:
        body = json.dumps({"text": text}).encode()
        return await connection.request("POST", path, body, JSON | (headers or {}))
    finally:
        await connection.close()


async def crowd(url: str, door: str, texts: list[str]) -> list[Caller]:
    """What every caller of a crowd saw in the end."""
    last: dict[int, Caller] = {}
    async for caller in fire(url + "/api", door, texts):
        last[caller.i] = caller
    return [last[i] for i in sorted(last)]


async def limited(url: str, texts: Texts, rounds: int) -> list[Figure]:
    """Five answered, seven refused at once; nobody waits long; those who obey are served."""
    answered, refused_ms, over, served, asked = [], [], [], 0, 0
    for round_number in range(rounds):
        callers = await crowd(url, "limited", texts.take(12))
        inside = [caller for caller in callers if caller.status == 200]
        turned = [caller for caller in callers if caller.status == 429]
        answered.append((len(inside), len(turned)))
        refused_ms += [caller.round_trip_ms or 0.0 for caller in turned]
        service = median(caller.body["inference_ms"] for caller in inside)
        over += [caller.body["waited_ms"] / (5 * service) for caller in inside]
        name = "retry-after" if round_number % 2 else "retry-after-ms"
        back = await asyncio.gather(*(_return(url, caller, name) for caller in turned))
        served += sum(back)
        asked += len(back)
        await asyncio.sleep(0.5)
    share = served / asked if asked else 0.0
    exact = all(counts == (5, 7) for counts in answered)
    return [
        Figure("limited: twelve at once", "5 answered, 7 refused", str(answered), exact, {}),
        _bound("limited: a refusal's answer", refused_ms, 20.0, "ms, slowest"),
        _bound("limited: worst wait / (5 x service)", over, 1.1, "x, worst"),
        Figure(
            "limited: served on the first return",
            ">= 0.90",
            f"{share:.3f} ({served} of {asked})",
            share >= 0.9,
            {"served": served, "returned": asked},
        ),
    ]


async def _return(url: str, caller: Caller, header: str) -> bool:
    wait_s = float(caller.headers[header]) / (1000 if header.endswith("ms") else 1)
    await asyncio.sleep(max(0.0, wait_s - (caller.round_trip_ms or 0.0) / 1000))
    again = await post(url, "/api/limited/predict", caller.text)
    return bool(again.status == 200)


async def queue(url: str, texts: Texts, rounds: int) -> list[Figure]:
    """Tickets at once, with a time that comes true."""
    accepted_ms, misses, statuses, done = [], [], [], 0
    for _ in range(rounds):
        for caller in await crowd(url, "queue", texts.take(12)):
            statuses.append(caller.status)
            accepted_ms.append(caller.round_trip_ms or 0.0)
            done += caller.answered
            ticket = caller.ticket
            real_s = (ticket["waited_ms"] + ticket["inference_ms"]) / 1000
            off = abs(caller.body["eta_seconds"] - real_s)
            misses.append(off / max(0.3, 0.2 * real_s))
        await asyncio.sleep(0.3)
    within = sum(miss <= 1 for miss in misses) / len(misses)
    return [
        _bound("queue: time to a 202", accepted_ms, 20.0, "ms, slowest"),
        Figure(
            "queue: all done",
            "all 202, all done",
            f"{done} of {len(statuses)}",
            done == len(statuses) and set(statuses) == {202},
            {},
        ),
        Figure(
            "queue: |ETA - real| within 20 % or 0.3 s",
            "all",
            f"{within:.3f}, worst {max(misses):.2f} x the allowance",
            within == 1.0,
            {"within": within, "worst": max(misses)},
        ),
    ]


async def overhead(url: str, texts: Texts, count: int) -> list[Figure]:
    """What the server adds to the model's time, one client at a time."""
    connection = await Connection.open(url)
    added = []
    for text in [t for _ in range(count // 24 + 1) for t in texts.take(24)][:count]:
        body = json.dumps({"text": text}).encode()
        response = await connection.request("POST", "/api/limited/predict", body, JSON)
        timing = parse_server_timing(response.headers["server-timing"])
        added.append(timing["total"] - timing["infer"])
    await connection.close()
    return [
        Figure(
            "server overhead (total - infer), one client",
            "p50 < 2 ms",
            f"p50 {median(added):.3f} ms, p95 {quantile(added, 0.95):.3f} ms, n {len(added)}",
            median(added) < 2.0,
            {"p50_ms": median(added), "p95_ms": quantile(added, 0.95), "n": len(added)},
        )
    ]


async def livez(url: str, texts: Texts, probes: int) -> list[Figure]:
    """Whether the box says that it lives while its lane is saturated."""
    stop = asyncio.Event()

    async def busy() -> None:
        while not stop.is_set():
            await post(url, "/api/batched/predict", texts.take(1)[0])

    crowding = [asyncio.create_task(busy()) for _ in range(8)]
    connection = await Connection.open(url)
    took = []
    for _ in range(probes):
        response = await connection.request("GET", "/livez")
        took.append(response.seconds * 1000)
        await asyncio.sleep(0.005)
    stop.set()
    await asyncio.gather(*crowding)
    await connection.close()
    p99 = quantile(took, 0.99)
    return [
        Figure(
            "/livez while the lane is saturated",
            "p99 < 5 ms",
            f"p50 {median(took):.2f}, p99 {p99:.2f}, worst {max(took):.2f} ms, n {len(took)}",
            p99 < 5.0,
            {"p50_ms": median(took), "p99_ms": p99, "worst_ms": max(took), "n": len(took)},
        )
    ]


async def hang_ups(url: str, texts: Texts, rounds: int) -> list[Figure]:
    """Forty who leave while they wait cost the next caller at most two service times."""
    ratios = []
    for _ in range(rounds):
        leaving = []
        for text in texts.take(40):
            connection = await Connection.open(url)
            body = json.dumps({"text": text}).encode()
            asking = connection.request("POST", "/api/batched/predict", body, JSON)
            leaving.append((connection, asyncio.create_task(asking)))
        await asyncio.sleep(0.05)
        for connection, task in leaving:
            task.cancel()
            await connection.close()
        await asyncio.gather(*(task for _, task in leaving), return_exceptions=True)
        live = await post(url, "/api/batched/predict", texts.take(1)[0])
        body = json.loads(live.body)
        ratios.append(body["waited_ms"] / body["inference_ms"])
    return [_bound("wait after 40 hang-ups / service", ratios, 2.0, "x, worst")]


def _bound(name: str, values: list[float], most: float, unit: str) -> Figure:
    worst = max(values)
    numbers = {"worst": worst, "p50": median(values), "n": len(values)}
    seen = f"{worst:.2f} (p50 {median(values):.2f}, n {len(values)})"
    return Figure(name, f"<= {most:g} {unit}", seen, worst <= most, numbers)


async def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All scenarios, one after another, on one box."""
    texts, figures = Texts(), []
    async with box([]) as url:
        for name, scenario in (
            ("limited", limited(url, texts, arguments.rounds)),
            ("queue", queue(url, texts, arguments.rounds)),
            ("overhead", overhead(url, texts, 30 * arguments.rounds)),
            ("livez", livez(url, texts, 200 * arguments.rounds)),
            ("hang-ups", hang_ups(url, texts, arguments.rounds)),
        ):
            began = time.monotonic()
            print(f"{name} ...", end=" ", flush=True)
            figures += await scenario
            print(f"{time.monotonic() - began:.0f} s")
    return figures


def report(figures: list[Figure], machine: dict[str, Any], command: str) -> str:
    """The result as Markdown."""
    lines = ["# Four doors, one crowd", "", f"`{command}`", ""]
    lines += [f"- {name}: {value}" for name, value in machine.items()]
    lines += ["", "| figure | promised | seen | reached |", "|---|---|---|---|"]
    for figure in figures:
        reached = "yes" if figure.reached else "**no**"
        lines.append(f"| {figure.name} | {figure.promised} | {figure.seen} | {reached} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = asyncio.run(measure(arguments))
    text = report(figures, machine, f"make bench-doors (rounds {arguments.rounds})")
    folder = RESULTS / machine["when"][:10]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "doors.md").write_text(text, encoding="utf-8")
    kept = {"machine": machine, "figures": [_plain(figure) for figure in figures]}
    (folder / "doors.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(text)
    print(f"kept in {os.path.relpath(folder)}")


def _plain(figure: Figure) -> dict[str, Any]:
    return {name: getattr(figure, name) for name in Figure.__slots__}


if __name__ == "__main__":
    main()
