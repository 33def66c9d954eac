"""What the four doors do with a crowd, measured on the real box: `make bench-doors`.

Starts a box of its own on a free port, sends bounded traffic over loopback, stops it, and writes a
dated result. Every figure is a ratio within this run, or a bound that the design promises.
"""

import argparse
import asyncio
import json
import time
from statistics import median
from typing import Any

from figures import Figure, at_most, keep, quantile
from machine import fingerprint
from review_model import speed, topics
from servers import running

from tailrace.bench.crowd import Caller, fire
from tailrace.bench.http import Connection
from tailrace.bench.reviews import reviews
from tailrace.wire.headers import parse_server_timing

JSON = {"Content-Type": "application/json"}


class Texts:
    """Reviews that nobody has asked before: every one misses the cache."""

    def __init__(self) -> None:
        self._used = 0

    def take(self, count: int) -> list[str]:
        """`count` new ones."""
        plain = reviews(count)
        self._used += 1
        return [f"{text} #{self._used}" for text in plain]


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
        at_most("limited: a refusal's answer", refused_ms, 20.0, "ms, slowest"),
        at_most("limited: worst wait / (5 x service)", over, 1.1, "x, worst"),
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
        at_most("queue: time to a 202", accepted_ms, 20.0, "ms, slowest"),
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
    return [at_most("wait after 40 hang-ups / service", ratios, 2.0, "x, worst")]


async def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All scenarios, one after another, on one box."""
    texts, figures = Texts(), []
    async with running("serve") as server:
        url = server.url
        await asyncio.sleep(3.0)  # the naive child is measured first
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


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = asyncio.run(measure(arguments))
    print("model ...", flush=True)
    figures += [*speed(arguments.rounds), *topics()]
    command = f"make bench-doors (rounds {arguments.rounds})"
    keep("doors", "Four doors, one crowd", figures, machine, command)


if __name__ == "__main__":
    main()
