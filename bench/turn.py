"""A recommendation turn with a language model as slow as the seed's: `make bench-turn`.

The model is a script on loopback that takes what the seed recorded of its own (streaming, one reason): first
piece p50 794 ms, p95 1,002 ms; whole answer p50 1,092 ms, p95 1,326 ms. Every call draws its delays from the
log-normal curve through these, by a fixed seed. The search before it is the real one, with the catalogue that
ships. Turns are made with the search written by the model (two calls after each other) and by the person's
own words (one call). Absolute times: the bounds are of a person who waits.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from figures import Figure, keep, quantile
from machine import fingerprint

from books import ready, start

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from talking import is_spec, written
from upstream import Asked, ScriptedUpstream, Step, upstream

FIRST_S = (0.794, 1.002)
WHOLE_S = (1.092, 1.326)
"""The seed's p50 and p95."""
Z95 = 1.645
CALLERS = 4
TURNS = 10
"""Of each caller."""
TTFB_S, TURN_S = 1.5, 4.0
WISHES = ("비 오는 날 읽기 좋은 잔잔한 소설", "우주가 나오는 과학책", "힘든 하루 끝에 읽을 에세이")
SPEC = {
    "query": "잔잔한 소설",
    "category": None,
    "author": None,
    "year_from": None,
    "year_to": None,
}
REASONS = {
    f"{kind}_{number}": "담담한 문장으로 하루를 돌아보게 하는 책입니다. "
    * (1 if kind == "short" else 3)
    for kind in ("short", "long")
    for number in (1, 2, 3)
}


@dataclass
class Turns:
    """What the turns of one way took, in seconds since they were asked for."""

    first: list[float] = field(default_factory=list)
    """The first event."""
    reason: list[float] = field(default_factory=list)
    """The first words of a reason."""
    whole: list[float] = field(default_factory=list)


def drawn(source: random.Random, middle: float, high: float) -> float:
    """A delay of the log-normal curve with this p50 and p95."""
    return float(source.lognormvariate(log(middle), log(high / middle) / Z95))


def answering(source: random.Random, asked: Asked) -> Step:
    """What the scripted model does with a call."""
    body = SPEC if is_spec(asked) else REASONS
    pieces = written(json.dumps(body, ensure_ascii=False))
    first = drawn(source, *FIRST_S)
    rest = max(0.05, drawn(source, *WHOLE_S) - first)
    return Step(pieces=pieces, before_body_s=first, between_s=rest / len(pieces))


async def turn(url: str, text: str, seen: Turns) -> None:
    """One turn over a connection of its own."""
    body = {"messages": [{"role": "user", "content": text}], "count": 3}
    raw = json.dumps(body).encode()
    host = url.removeprefix("http://")
    head = (
        f"POST /api/books/recommend HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    )
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
    moments: dict[str, float] = {}
    while name := await _event(reader):
        moments.setdefault(name, time.perf_counter() - began)
        if name in {"done", "error"}:
            break
    writer.close()
    await writer.wait_closed()
    assert "done" in moments, moments
    seen.first.append(min(moments.values()))
    seen.reason.append(moments["short.delta"])
    seen.whole.append(moments["done"])


async def _event(reader: asyncio.StreamReader) -> str:
    """The name of the next event; empty at the end."""
    while line := await reader.readline():
        if line.startswith(b"event: "):
            return line.removeprefix(b"event: ").strip().decode()
    return ""


async def measured(way: str, far: ScriptedUpstream, store: Path) -> Turns:
    """All turns of one way."""
    environ = {
        "TAILRACE__STORE__PATH": str(store),
        "TAILRACE__LLM__SOURCE": far.url,
        "TAILRACE__LLM__MODEL": "far-chat",
        "TAILRACE__LLM__SPEC": way,
    }
    print("starting the book service; an empty store is filled first ...", flush=True)
    process, url = start(["books", "serve"], **environ)
    try:
        connection = await ready(url)
        await connection.close()
        await turn(url, WISHES[0], Turns())
        seen = Turns()

        async def caller(number: int) -> None:
            for n in range(TURNS):
                await turn(url, WISHES[(number + n) % len(WISHES)], seen)

        print(f"{CALLERS * TURNS} turns, the search made by {way} ...", flush=True)
        await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    finally:
        process.terminate()
        process.wait(30)
    return seen


def bounded(name: str, seconds: list[float], most: float) -> Figure:
    """A p95 against its bound."""
    high = quantile(seconds, 0.95)
    text = f"p50 {quantile(seconds, 0.5):.2f} s, p95 {high:.2f} s, n {len(seconds)}"
    return Figure(name, f"p95 <= {most:g} s", text, high <= most, {"s": seconds})


def main() -> None:
    """Both ways."""
    machine, source, figures = fingerprint(), random.Random(11), []
    with upstream() as far, tempfile.TemporaryDirectory() as folder:
        far.decide = lambda asked: answering(source, asked)
        for way in ("model", "words"):
            seen = asyncio.run(measured(way, far, Path(folder) / "books.db"))
            who = f"search made by {way}"
            figures += [
                bounded(f"{who}: first event", seen.first, TTFB_S),
                bounded(f"{who}: first words of a reason", seen.reason, TTFB_S),
                bounded(f"{who}: whole turn", seen.whole, TURN_S),
            ]
    keep(
        "turn",
        "A turn with a language model as slow as the seed's",
        figures,
        machine,
        "make bench-turn",
    )


if __name__ == "__main__":
    main()
