"""Covers: how many are found, how many taken for another, how long it takes: `make bench-covers`.

Covers of the catalogue's own books, and of books that it does not hold, are drawn in every layout and every
state, and sent to a running book service one after the other. No model elsewhere: what reading leaves
over is the share that one would be asked.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from figures import Figure, keep, quantile
from machine import fingerprint

from books import queries, ready, start, timed
from tailrace.apps.books.catalogue import shipped_documents
from tailrace.apps.books.cover.match import letters
from tailrace.bench.http import Connection
from tailrace.wire.headers import SERVER_TIMING, parse_server_timing

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from cover_pictures import LAYOUTS, SPOILS, Words, cover, filed  # noqa: E402

COVERS = 60
ROUNDS = 8
SEED = 20261201
JPEG = {"content-type": "image/jpeg"}
PARTS = ("decode", "detect", "recognise", "match")


@dataclass
class Tally:
    """How the covers of one set ended."""

    ends: Counter[str] = field(default_factory=Counter)
    by_layout: dict[str, Counter[str]] = field(default_factory=dict)
    by_state: dict[str, Counter[str]] = field(default_factory=dict)
    took_ms: list[float] = field(default_factory=list)
    parts_ms: dict[str, list[float]] = field(default_factory=dict)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def add(self, layout: str, state: str, end: str) -> None:
        """One cover more."""
        self.ends[end] += 1
        self.by_layout.setdefault(layout, Counter())[end] += 1
        self.by_state.setdefault(state, Counter())[end] += 1


async def ask(shop: Connection, words: Words, layout: str, state: str, tally: Tally) -> None:
    """Draw one cover, send it, and see what is made of it."""
    number = sum(tally.ends.values())
    picture = filed(cover(words, layout, state, seed=SEED + number))
    began = time.perf_counter()
    answer = await shop.request("POST", "/api/books/cover", picture, JPEG)
    tally.took_ms.append((time.perf_counter() - began) * 1000)
    assert answer.status == 200, answer.body
    for part, took in parse_server_timing(answer.headers[SERVER_TIMING.lower()]).items():
        tally.parts_ms.setdefault(part, []).append(took)
    body = json.loads(answer.body)
    end = "needs_input"
    if body["books"]:
        found = body["books"][0]["document"]["title"]
        end = "right" if letters(found) == letters(words.title) else "wrong"
    if end != "right":
        read = [line["text"] for line in body["read"]]
        tally.misses.append(
            {"title": words.title, "layout": layout, "state": state, "end": end, "read": read}
        )
    tally.add(layout, state, end)


async def searches_beside(url: str, shop: Connection) -> Figure:
    """Searches while covers are read, and while none is; the two take turns."""
    source, times = queries(5), {"idle": [], "reading": []}  # type: dict[str, list[float]]
    picture = filed(cover(Words("이 책은 여기 없습니다", "아무개"), "plain", "noisy", seed=SEED))
    reader = await ready(url)
    for _ in range(ROUNDS):
        for kind, ends in (("idle", time.monotonic() + 1.5), ("reading", 0.0)):
            reading = None
            if kind == "reading":
                reading = asyncio.create_task(
                    reader.request("POST", "/api/books/cover", picture, JPEG)
                )
            while not reading.done() if reading else time.monotonic() < ends:
                took, status = await timed(shop, "/api/books/search", {"q": next(source)})
                assert status == 200, status
                times[kind].append(took)
                await asyncio.sleep(0.02)
            if reading:
                assert reading.result().status == 200
    seen = median(times["reading"]) / median(times["idle"])
    text = f"{seen:.2f}; " + ", ".join(
        f"{kind} p50 {median(took):.0f} ms, p95 {quantile(took, 0.95):.0f} ms, n {len(took)}"
        for kind, took in times.items()
    )
    return Figure("search p50, while covers are read / while none is", "-", text, True, times)


def shares(tally: dict[str, Counter[str]]) -> str:
    """Found right, of how many, by kind."""
    return ", ".join(f"{kind} {c['right']}/{c.total()}" for kind, c in tally.items())


def figures(known: Tally, foreign: Tally) -> list[Figure]:
    """The lines of the report."""
    right, wrong = known.ends["right"], known.ends["wrong"]
    left = known.ends["needs_input"] / COVERS
    taken = foreign.ends.total() - foreign.ends["needs_input"]
    parts = {part: median(known.parts_ms[part]) for part in PARTS if part in known.parts_ms}
    took = {"p50": median(known.took_ms), "p95": quantile(known.took_ms, 0.95)}
    numbers = {"ends": known.ends, "misses": known.misses}
    return [
        Figure(
            f"found, of {COVERS} covers",
            ">= 85 %",
            f"{right} ({shares(known.by_layout)}; {shares(known.by_state)})",
            right >= 0.85 * COVERS,
            {**numbers, "by_layout": known.by_layout, "by_state": known.by_state},
        ),
        Figure("taken for another book", "0", str(wrong), wrong == 0, numbers),
        Figure("left to a model elsewhere or a person", "-", f"{left:.1%}", True, {"share": left}),
        Figure(
            f"taken for a book of the catalogue, of {foreign.ends.total()} that it does not hold",
            "0",
            str(taken),
            taken == 0,
            {"ends": foreign.ends, "misses": foreign.misses},
        ),
        Figure(
            "time of a cover of a book that is there",
            "-",
            f"p50 {took['p50']:.0f} ms, p95 {took['p95']:.0f} ms; p50 of parts: "
            + ", ".join(f"{part} {ms:.0f}" for part, ms in parts.items()),
            True,
            {**took, "parts": parts, "n": COVERS},
        ),
        Figure(
            "time of a cover of a book that is not (every way of turning it is tried)",
            "-",
            f"p50 {median(foreign.took_ms):.0f} ms, p95 {quantile(foreign.took_ms, 0.95):.0f} ms",
            True,
            {"p50": median(foreign.took_ms), "n": len(foreign.took_ms)},
        ),
    ]


async def main() -> None:
    """All figures."""
    machine = fingerprint()
    ways = [(layout, state) for layout in LAYOUTS for state in SPOILS]
    dice = random.Random(SEED)
    dice.shuffle(ways)
    books = dice.sample(shipped_documents(), COVERS)
    titles = json.loads((TESTS / "data" / "foreign_covers.json").read_text(encoding="utf-8"))
    known, foreign = Tally(), Tally()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"STORE__PATH": f"{folder}/books.db", "LLM__SOURCE": "off"}
        process, url = start(
            ["books", "serve"], **{f"TAILRACE__{name}": value for name, value in settings.items()}
        )
        try:
            shop = await ready(url)
            await ask(shop, Words("첫 그림은 세지 않는다"), "plain", "clean", Tally())
            for number, book in enumerate(books):
                words = Words(book.title, book.author or "", book.publisher or "")
                await ask(shop, words, *ways[number % len(ways)], known)
            for number, (title, author) in enumerate(titles):
                await ask(shop, Words(title, author), *ways[number % len(ways)], foreign)
            beside = await searches_beside(url, shop)
        finally:
            process.terminate()
            process.wait(30)
    made = [*figures(known, foreign), beside]
    keep("covers", "Covers, read here", made, machine, "make bench-covers")


if __name__ == "__main__":
    asyncio.run(main())
