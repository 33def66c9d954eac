"""What a request costs the generator beside httpx, and how true it reads: `make bench-generator`.

CPU time of this process per request, ours and theirs in turns on one server of no delay in a process of its
own; then the self-test.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
import uvloop
from figures import Figure, keep
from machine import fingerprint

from tailrace.latency.fixed_delay import fixed_delays
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.self_test import TOLERANCE_MS, self_test
from tailrace.latency.targets.plain import PlainUrl

MOST = 0.5
"""Of httpx's CPU time."""
MS = 1000


async def ours(url: str, count: int) -> float:
    """CPU milliseconds of one request that becomes a row."""
    async with Pool(connections=1) as pool:
        target = PlainUrl(url)

        async def one(number: int) -> None:
            await measure(pool, target, number)

        return await _cost(one, count)


async def theirs(url: str, count: int) -> float:
    """CPU milliseconds of one request of httpx, which measures nothing."""
    async with httpx.AsyncClient(trust_env=False) as client:

        async def one(number: int) -> None:
            del number
            await client.get(url)

        return await _cost(one, count)


async def _cost(one: Callable[[int], Awaitable[None]], count: int) -> float:
    await one(0)
    began = time.process_time()
    for number in range(count):
        await one(number)
    return (time.process_time() - began) / count * MS


async def costs(rounds: int, count: int) -> Figure:
    """The ratios of all rounds; the worst must hold."""
    with fixed_delays([0]) as (url,):
        pairs = [(await ours(url, count), await theirs(url, count)) for _ in range(rounds)]
    ratios = sorted(mine / other for mine, other in pairs)
    middle = ratios[len(ratios) // 2]
    seen = f"{middle:.2f} (rounds {', '.join(f'{one:.2f}' for one in ratios)})"
    numbers = {"ours_ms": [a for a, _ in pairs], "httpx_ms": [b for _, b in pairs]}
    name = "CPU of a request, ours over httpx's"
    return Figure(name, f"<= {MOST:g}", seen, ratios[-1] <= MOST, numbers)


async def readings(loop: str) -> list[Figure]:
    """How much more than the servers' own account is read at p50, on this kind of event loop."""
    found = []
    for one in await self_test():
        seen = f"{one.off_ms:.3f} ms (n {one.n})"
        numbers = {"off_ms": one.off_ms, "read_ms": one.read_ms, "n": one.n}
        name = f"{one.delay_ms:g} ms reads beyond the server's own account, {loop}"
        found.append(Figure(name, f"<= {TOLERANCE_MS:g} ms", seen, one.good, numbers))
    return found


def main() -> None:
    """Measure, and keep the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--n", type=int, default=500, help="requests of each in a round")
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = [asyncio.run(costs(arguments.rounds, arguments.n))]
    figures += asyncio.run(readings("asyncio"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures += runner.run(readings("uvloop"))
    command = f"make bench-generator (rounds {arguments.rounds}, n {arguments.n})"
    keep("generator", "What the generator costs, and how true it reads", figures, machine, command)


if __name__ == "__main__":
    main()
