"""What the model server does with more than it can do: `make bench-overload`.

Open-loop Poisson arrivals at multiples of the capacity, measured just before on the same server. The load
comes from processes of its own. `--seconds 60` is the long run.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from figures import Figure, keep, quantile, show
from machine import fingerprint
from servers import EMBEDDER, Loaded, Server, api, load

WORDS = (120, 120)
"""A passage of some 125 tokens: an embedding server's usual load."""
DEADLINE_S = 1.0
TIMES = (2, 5, 10)
PARTS = ("obedient", *(f"{n}x" for n in TIMES), "fair", "livez", "memory")
AT_THE_DOOR = {"deadline-infeasible", "lane-full", "rate-limited", "memory-pressure", "draining"}
Scenario = Callable[[Server], Awaitable[list[Figure]]]
KEYS = {"fair": "key-of-the-fair-one", "heavy": "key-of-the-heavy-one"}


def sender(name: str) -> dict[str, str]:
    """The headers of one caller."""
    deadline = {"x-deadline-ms": str(int(DEADLINE_S * 1000))}
    return {**deadline, "authorization": f"Bearer {KEYS[name]}"}


async def capacity(server: Server, seconds: float) -> float:
    """Answers a second at full load without overload: eight clients who wait for their answers."""
    seen = await load(server, clients=8, seconds=seconds, words=WORDS, headers=sender("fair"))
    return seen.per_second


async def offered(server: Server, times: int, seconds: float) -> list[Figure]:
    """So many times the capacity, whoever may be refused."""
    before = await capacity(server, 5)
    job = asyncio.create_task(
        load(server, rate=times * before, seconds=seconds, words=WORDS, headers=sender("fair"))
    )
    sizes = await _sizes(server, job)
    seen = await job
    # At first connections open and what is bounded is filled; in the last quarter nothing may grow.
    settled = sizes[len(sizes) * 3 // 4]
    grown = sizes[-1] / settled
    full = median([before, await capacity(server, 5)])
    in_time = [one for one in seen.answered if one.took <= DEADLINE_S]
    goodput = len(in_time) / max(seconds, seen.took) / full
    refused = [one for one in seen.seen if one.code in AT_THE_DOOR]
    inside = [one for one in seen.seen if one.code not in AT_THE_DOOR]
    p99_ms = quantile([one.took for one in inside], 0.99) * 1000
    door_ms = [one.took * 1000 for one in refused] or [0.0]
    statuses = _counted(seen)
    about = {"statuses": statuses, "capacity": full, "load_cpu_share": seen.cpu_s / seen.took}
    at = f"{times} x capacity"
    return [
        Figure(
            f"{at}: goodput / capacity",
            ">= 0.95",
            f"{goodput:.3f} ({full:.0f} a second; {statuses})",
            goodput >= 0.95,
            about,
        ),
        Figure(
            f"{at}: p99 of those let in",
            f"<= {DEADLINE_S * 1000:.0f} ms, the deadline",
            f"{p99_ms:.0f} ms (n {len(inside)}, answered {len(seen.answered)})",
            p99_ms <= DEADLINE_S * 1000,
            {"p50_ms": quantile([one.took for one in inside], 0.5) * 1000},
        ),
        Figure(
            f"{at}: p99 of a refusal",
            "< 10 ms",
            f"{quantile(door_ms, 0.99):.2f} ms (p50 {median(door_ms):.2f}, n {len(refused)})",
            quantile(door_ms, 0.99) < 10,
            {},
        ),
        Figure(
            f"{at}: memory over the last quarter",
            "<= 1.01 x",
            f"{grown:.4f} x ({sizes[0]:.0f} MiB before, {settled:.0f}, {sizes[-1]:.0f})",
            grown <= 1.01,
            {"mib": sizes},
        ),
    ]


async def _sizes(server: Server, job: "asyncio.Task[Loaded]") -> list[float]:
    """The server's memory from now until the load is over, four times a second."""
    sizes = [server.rss_mib()]
    while not job.done():
        await asyncio.sleep(0.25)
        sizes.append(server.rss_mib())
    return sizes


def _counted(seen: Loaded) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in seen.seen:
        name = one.code or str(one.status)
        counts[name] = counts.get(name, 0) + 1
    return counts


async def obedient(server: Server, rounds: int) -> list[Figure]:
    """A crowd several times too large; who is refused comes back once, when told."""
    served = returned = 0
    for _ in range(rounds):
        size = int(4 * await capacity(server, 3) * DEADLINE_S)
        seen = await load(
            server,
            clients=size,
            requests=size,
            words=WORDS,
            headers=sender("fair"),
            obey=True,
        )
        returned += sum(one.returned != 0 for one in seen.seen)
        served += sum(one.returned == 200 for one in seen.seen)
    share = served / returned if returned else 0.0
    told = f"{share:.3f} ({served} of {returned})"
    return [Figure("served on the first return", ">= 0.90", told, share >= 0.9, {})]


async def fair(server: Server, seconds: float) -> list[Figure]:
    """One asks for its half of the capacity, another for twenty times as much."""
    full = await capacity(server, 5)
    both = [
        load(server, rate=rate, seconds=seconds, words=WORDS, headers=sender(name))
        for name, rate in (("fair", full / 2), ("heavy", full * 10))
    ]
    light, heavy = await asyncio.gather(*both)
    full = median([full, await capacity(server, 5)])
    got = sum(one.took <= DEADLINE_S for one in light.answered) / seconds / (full / 2)
    beside = sum(one.took <= DEADLINE_S for one in heavy.answered) / seconds / (full / 2)
    told = f"{got:.3f} of its share; the other got {beside:.3f} of its own ({_counted(light)})"
    return [Figure("fair beside one that sends 20 x", ">= 0.90", told, got >= 0.9, {})]


async def livez(server: Server, seconds: float) -> list[Figure]:
    """Whether it says that it lives while every core is busy."""
    job = asyncio.create_task(
        load(server, clients=16, seconds=seconds + 1, words=WORDS, headers=sender("fair"))
    )
    await asyncio.sleep(0.5)
    seen = await load(server, method="GET", path="/livez", seconds=seconds, pause_s=0.005)
    await job
    took = [one.took * 1000 for one in seen.answered]
    p99 = quantile(took, 0.99)
    told = f"p50 {median(took):.2f}, p99 {p99:.2f}, worst {max(took):.2f} ms (n {len(took)})"
    return [Figure("/livez at full load", "p99 < 1 ms", told, p99 < 1, {})]


async def memory(server: Server, requests: int) -> list[Figure]:
    """Requests of random length, and the slope of the memory in the second half."""
    job = asyncio.create_task(
        load(server, clients=8, requests=requests, words=(1, 200), headers=_key("fair"))
    )
    sizes = await _sizes(server, job)
    await job
    half = np.asarray(sizes[len(sizes) // 2 :])
    slope = float(np.polyfit(np.arange(len(half)), half, 1)[0] * len(half) / half[0])
    told = f"{slope:+.4f} of {half[0]:.0f} MiB over the second half of {requests} requests"
    return [Figure("memory slope", "<= 0.01", told, slope <= 0.01, {"mib": sizes})]


def _key(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {KEYS[name]}"}


async def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All scenarios, one after another."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text("".join(f"{name}:{key}\n" for name, key in KEYS.items()))
        scenarios: list[tuple[str, Scenario]] = [
            ("obedient", lambda server: obedient(server, 3)),
            *((f"{n}x", partial(offered, times=n, seconds=arguments.seconds)) for n in TIMES),
            ("fair", lambda server: fair(server, arguments.seconds)),
            ("livez", lambda server: livez(server, min(15.0, arguments.seconds))),
            ("memory", lambda server: memory(server, arguments.requests)),
        ]
        for name, scenario in scenarios:
            if arguments.only and name not in arguments.only:
                continue
            print(f"{name} ...", flush=True)
            # A server of its own: what it promised one crowd must not weigh on the next.
            async with api([EMBEDDER], keys={"file": str(keys)}) as server:
                found = await scenario(server)
            show(found)
            figures += found
    return figures


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each overload")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts; nothing is kept")
    parser.add_argument("--requests", type=int, default=3000, help="of the memory run")
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = asyncio.run(measure(arguments))
    if arguments.only:
        return
    command = f"make bench-overload ({arguments.seconds:g} s each, {arguments.requests} requests)"
    keep("overload", "More than it can do", figures, machine, command)


if __name__ == "__main__":
    main()
