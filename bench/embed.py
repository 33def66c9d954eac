"""How much of the machine the model server hands on: `make bench-embed`.

Servers and a bare ONNX Runtime loop take turns on the same cores, round by round, so that whatever else
the machine does hits them alike. Only ratios within one round are compared.
"""

import argparse
import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from figures import Figure, at_most, keep, quantile, ratio, show
from machine import fingerprint
from servers import EMBEDDER, Server, api, load

from tailrace.bench.http import Connection
from tailrace.models.cores import usable_cores
from tailrace.wire.headers import parse_server_timing

WORDS = (24, 24)
STAIRS = (1, 2, 4, 8, 16, 32, 64, 128)
MIXED = (0, 0)
PARTS = ("cold", "bare", "added", "staircase", "bulk", "interactive", "rerank", "invariance")
ALONE = [{**EMBEDDER, "runs": {"items_max": 1}}]
"""The embedder without shared runs: comparable with a loop over single texts."""


class Bare:
    """The loops without a server, in their own process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def __call__(self, job: str, **arguments: Any) -> float:
        """The result of one job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([job, arguments]).encode() + b"\n")
        line = await self._process.stdout.readline()
        return float(json.loads(line))


@asynccontextmanager
async def bare() -> AsyncIterator[Bare]:
    """The loops, warm."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).parent / "raw.py"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield Bare(process)
    finally:
        process.kill()
        await process.wait()


async def added(server: Server, rounds: int) -> list[Figure]:
    """What the event loop's thread works for one request: HTTP, JSON, tokenising, queue, answer."""
    figures = []
    for clients in (1, 8):
        micros, parts, sender = [], [], []
        for _ in range(rounds):
            before = server.loop_cpu_s()
            seen = await load(server, clients=clients, requests=250, words=WORDS, timing=True)
            micros.append((server.loop_cpu_s() - before) / len(seen.seen) * 1e6)
            sender.append(seen.cpu_s / len(seen.seen) * 1e6)
            parts += [parse_server_timing(one.timing) for one in seen.answered]
        name = f"added CPU per request, {clients} client{'s' if clients > 1 else ''}"
        best = f"{min(micros):.0f} us in the quietest round; {median(micros):.0f} in the middle one"
        figures.append(
            Figure(
                name,
                "<= 150 us",
                best,
                min(micros) <= 150,
                {"us": micros, "sender_us": sender, "parts_ms": _middle(parts)},
            )
        )
    return figures


def _middle(timings: list[dict[str, float]]) -> dict[str, float]:
    """The median of each part, in milliseconds of wall time."""
    names = dict.fromkeys(name for timing in timings for name in timing)
    return {name: median(timing.get(name, 0.0) for timing in timings) for name in names}


async def against_bare(loops: Bare, rounds: int, seconds: float) -> list[Figure]:
    """One and two slots, server and bare loop, in turn."""
    counts = (1, 2) if usable_cores() > 1 else (1,)
    server_rate: dict[int, list[float]] = {count: [] for count in counts}
    bare_rate: dict[int, list[float]] = {count: [] for count in counts}
    shares: dict[int, list[float]] = {count: [] for count in counts}
    async with AsyncExitStack() as stack:
        servers = {n: await stack.enter_async_context(api(ALONE, threads=n)) for n in counts}
        for _ in range(rounds):
            for count in counts:
                first = await loops("single", threads=count, words=WORDS, seconds=seconds / 2)
                seen = await load(servers[count], clients=4 * count, seconds=seconds, words=WORDS)
                last = await loops("single", threads=count, words=WORDS, seconds=seconds / 2)
                server_rate[count].append(seen.per_second)
                bare_rate[count].append((first + last) / 2)
                shares[count].append(seen.per_second / bare_rate[count][-1])
    least = {1: 0.92, 2: 0.90}
    figures = [
        ratio(
            f"server over bare loop, {n} slot{'s' * (n > 1)}",
            least[n],
            shares[n],
            rate=server_rate[n],
        )
        for n in counts
    ]
    if len(counts) > 1:
        grown = [two / one for one, two in zip(server_rate[1], server_rate[2], strict=True)]
        plain = [two / one for one, two in zip(bare_rate[1], bare_rate[2], strict=True)]
        name = f"two slots over one (the bare loop itself: {median(plain):.2f})"
        figures.append(ratio(name, 1.9, grown, bare=plain))
    return figures


async def staircase(server: Server, loops: Bare, rounds: int, seconds: float) -> list[Figure]:
    """More and more clients: throughput must not fall after its best.

    Each step is measured by the bare loop before and after it: a machine that slows down meanwhile does
    not look like a staircase.
    """
    rates: dict[int, list[float]] = {clients: [] for clients in STAIRS}
    shares: dict[int, list[float]] = {clients: [] for clients in STAIRS}
    slots = min(2, usable_cores())
    for number in range(rounds):
        for clients in STAIRS if number % 2 == 0 else STAIRS[::-1]:
            before = await loops("single", threads=slots, words=WORDS, seconds=seconds / 4)
            seen = await load(server, clients=clients, seconds=seconds, words=WORDS)
            after = await loops("single", threads=slots, words=WORDS, seconds=seconds / 4)
            rates[clients].append(seen.per_second)
            shares[clients].append(seen.per_second / ((before + after) / 2))
    middle = [median(shares[clients]) for clients in STAIRS]
    kept = [share / max(middle[: at + 1]) for at, share in enumerate(middle)]
    told = ", ".join(
        f"{c}: {share:.2f} ({median(rates[c]):.0f}/s)"
        for c, share in zip(STAIRS, middle, strict=True)
    )
    numbers = {"clients": STAIRS, "per_second": rates, "over_bare": shares}
    seen_text = f"worst {min(kept):.3f} of the best before (times the bare loop's rate: {told})"
    return [Figure("staircase of clients", ">= 0.97", seen_text, min(kept) >= 0.97, numbers)]


async def bulk(server: Server, loops: Bare, rounds: int) -> list[Figure]:
    """Texts of mixed lengths in big requests, beside naive batches and the best that can be done."""
    slots, over_naive, over_best = min(2, usable_cores()), [], []
    for _ in range(rounds):
        naive = await loops("arrival", threads=slots, words=MIXED, count=256)
        seen = await load(server, clients=2, requests=4, items=256, words=MIXED, prepared=8)
        best = await loops("sorted", threads=slots, words=MIXED, count=512)
        rate = len(seen.answered) * 256 / seen.took
        over_naive.append(rate / naive)
        over_best.append(rate / best)
    return [
        ratio("mixed-length bulk over batches of 32 as they come", 4.0, over_naive),
        ratio("mixed-length bulk over the sorted bare loop", 0.95, over_best),
    ]


async def interactive(server: Server, loops: Bare, rounds: int) -> list[Figure]:
    """One client's short questions while a bulk job runs."""
    over = []
    for _ in range(rounds):
        idle = await load(server, requests=60, words=WORDS)
        chunk_s = await loops("chunk", tokens=256)
        job = asyncio.create_task(
            load(server, clients=2, seconds=6, items=256, words=MIXED, prepared=8)
        )
        await asyncio.sleep(1.0)
        busy = await load(server, requests=60, words=WORDS)
        await job
        bound = 2 * quantile([s.took for s in idle.answered], 0.95) + chunk_s
        over.append(quantile([s.took for s in busy.answered], 0.95) / bound)
    return [at_most("interactive p95 during bulk / (2 x idle + a chunk)", over, 1.0, "x, worst")]


async def reranked(server: Server, loops: Bare, rounds: int) -> list[Figure]:
    """24 pairs in one request, beside one padded batch of them."""
    quicker = []
    for _ in range(rounds * 2):
        padded_s = await loops("pairs", count=24)
        seen = await load(server, path="/rerank", requests=3, items=24, words=(26, 44), prepared=4)
        if not seen.answered:
            status = seen.seen[0].status
            return [Figure("rerank of 24 pairs", ">= 2.2", f"no answer: {status}", False, {})]
        quicker.append(padded_s / median(one.took for one in seen.answered))
    return [ratio("rerank of 24 pairs over one padded batch", 2.2, quicker)]


async def invariance(server: Server) -> list[Figure]:
    """The same texts alone, in company, and in company of other lengths."""
    texts = [f"{'word ' * (number * 3 % 40)}number {number}" for number in range(48)]
    connection = await Connection.open(server.url)

    async def vectors(batch: list[str]) -> Any:
        body = json.dumps({"input": batch, "encoding_format": "base64"}).encode()
        reply = await connection.request("POST", "/v1/embeddings", body)
        data = json.loads(reply.body)["data"]
        return np.stack([np.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in data])

    together = await vectors(texts)
    alone = np.concatenate([await vectors([one]) for one in texts])
    await connection.close()
    least = float((together.astype(np.float64) * alone).sum(axis=1).min())
    seen = f"least cosine {least:.7f} over {len(texts)} texts"
    return [Figure("batch invariance", ">= 0.99999", seen, least >= 0.99999, {"least": least})]


async def cold_start(rounds: int) -> list[Figure]:
    """From the start of the process to the first moment it takes requests; the model cache is warm."""
    took = []
    for _ in range(rounds):
        async with api([EMBEDDER]) as server:
            took.append(server.ready_s)
    seen = f"{min(took):.2f} s in the quietest of {rounds}, {median(took):.2f} in the middle one"
    return [Figure("cold start to ready, one model", "< 2 s", seen, min(took) < 2, {"s": took})]


async def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All of it, or the parts asked for."""
    rounds, seconds = arguments.rounds, arguments.seconds
    only = arguments.only or PARTS
    figures = await cold_start(rounds) if "cold" in only else []
    async with bare() as loops:
        if "bare" in only:
            figures += await against_bare(loops, rounds, seconds)
        parts: dict[str, Callable[[Server], Awaitable[list[Figure]]]] = {
            "added": lambda server: added(server, rounds),
            "staircase": lambda server: staircase(server, loops, rounds, seconds),
            "bulk": lambda server: bulk(server, loops, rounds),
            "interactive": lambda server: interactive(server, loops, rounds),
            "rerank": lambda server: reranked(server, loops, rounds),
            "invariance": invariance,
        }
        chosen = [name for name in parts if name in only]
        if chosen:
            async with api() as server:
                for name in chosen:
                    print(f"{name} ...", flush=True)
                    figures += await parts[name](server)
    return figures


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts; nothing is kept")
    arguments = parser.parse_args()
    machine = fingerprint()
    figures = asyncio.run(measure(arguments))
    if arguments.only:
        show(figures)
        return
    command = f"make bench-embed (rounds {arguments.rounds}, {arguments.seconds:g} s a load)"
    keep("embed", "The model server and the bare runtime", figures, machine, command)


if __name__ == "__main__":
    main()
