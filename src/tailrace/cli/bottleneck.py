"""The story of a bottleneck that moved, told by measuring it: four places, one prediction, one check.

Starts the places, measures them for real, keeps the runs, and sets the prediction beside the place it was
made for. How it is shown is in bottleneck_page.py.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tailrace.bench.bottleneck.places import (
    ACTS,
    EDGE_MS,
    FASTER,
    LIMIT_S,
    NEAR_MS,
    SLOWER,
    Act,
)
from tailrace.bench.bottleneck.server import PING, serving
from tailrace.bench.generator import Sender
from tailrace.bench.scenario import LoadTable
from tailrace.bench.steady import Settled
from tailrace.bench.verdict import load_of, reasons
from tailrace.cli.foretelling import Measured, foretell, open_measured
from tailrace.latency.beyond import beyond, way_ms
from tailrace.latency.exchange import now_ns
from tailrace.latency.measure import measure
from tailrace.latency.moved import Verdict, moved
from tailrace.latency.pool import Pool
from tailrace.latency.prediction import Prediction, Score, keep, keep_score, score
from tailrace.latency.report.keep import keep_reports
from tailrace.latency.runs import Head, Run, RunWriter, open_run
from tailrace.latency.runs.summary import steady
from tailrace.latency.targets.chat import Chat
from tailrace.latency.targets.plain import PlainUrl
from tailrace.latency.targets.posted import digest
from tailrace.simulate.levers import parse
from tailrace.wire.record import Row

PROMPT = "오늘 회의를 한 문장으로 옮겨 줘."
PAIR = digest(PROMPT.encode())
PINGS = 8
"""Cheap requests before a measurement, for the length of the way."""
COLD = 2
SETTLE_S = 3.0
"""How long the places run before the first is measured, so that their lines are as usual."""
BEST_BEFORE = timedelta(days=30)
NEAR_LEVERS = (
    f"net={NEAR_MS:g}ms",
    "dedicated",
    f"speed={FASTER:g}x",
    f"timeout={LIMIT_S * 1000:g}ms",
)
EDGE_LEVERS = (
    f"net={EDGE_MS:g}ms",
    "dedicated",
    "servers=16",
    f"speed={SLOWER:g}x",
    f"timeout={LIMIT_S * 1000:g}ms",
)
MEASURING = 0.9
"""The share of the whole demo that is measuring."""

Tell = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Foretold:
    """A prediction, where it is kept, and what became of it."""

    prediction: Prediction
    path: Path
    score: Score


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that was found."""

    runs: dict[str, Run]
    """first, later, edge, near."""
    verdict: Verdict
    near: Foretold
    edge: Foretold
    seconds: float


def tell_story(root: Path, tell: Tell, acts: Sequence[Act] = ACTS) -> Story:
    """Measure, compare, foretell, check; raises OSError where a place does not start, and BadRun."""
    began = time.monotonic()
    runs: dict[str, Run] = {}
    planned = sum(act.n / act.rate for act in acts)
    done = 0.0
    with ExitStack() as stack:
        urls = {act.key: stack.enter_context(serving(act.place)) for act in acts}
        tell("letting the lines fill", 0.0)
        time.sleep(SETTLE_S)
        for act in acts:
            length = act.n / act.rate

            def within(share: float, name: str = act.place.name, done: float = done) -> None:
                tell(name, MEASURING * (done + share * length) / planned)  # noqa: B023 - called at once

            runs[act.key] = asyncio.run(_measure(act, urls[act.key], root, within))
            done += length
    tell("comparing the two dates", MEASURING)
    verdict = moved(runs["first"].rows, runs["later"].rows)
    opened = open_measured(runs["later"].path)
    near = _foretell(opened, NEAR_LEVERS, runs["near"], tell)
    edge = _foretell(opened, EDGE_LEVERS, runs["edge"], tell)
    tell("writing the reports", 1.0)
    for run in runs.values():
        keep_reports(run.path)
    return Story(runs, verdict, near, edge, time.monotonic() - began)


def _foretell(opened: Measured, words: Sequence[str], came: Run, tell: Tell) -> Foretold:
    def shown(what: str, share: float) -> None:
        tell(f"foretelling, {what}", MEASURING + (1 - MEASURING) * share)

    prediction = foretell(opened, parse(words), tell=shown)
    path = keep(prediction, opened.run.path)
    found = score(prediction, came)
    return Foretold(keep_score(prediction, path, found), path, found)


async def _measure(act: Act, url: str, root: Path, within: Callable[[float], None]) -> Run:
    """One act: how long the way is, then requests at an even rate, whatever the answers do."""
    load = LoadTable.model_validate(
        {
            "kind": "constant",
            "rate": act.rate,
            "length": f"{act.n + COLD}req",
            "cold": f"{COLD}req",
            "warm_up": "0%",
            "timeout": f"{act.timeout_s:g}s",
        }
    )
    extra = {} if act.reasoning is None else {"reasoning_effort": act.reasoning}
    chat = Chat(url, [PROMPT], "scripted", extra=extra)
    ping = PlainUrl(url.removesuffix("/v1") + PING)
    with RunWriter(root / act.key, _head(act, url, load)) as writer:
        async with Pool() as pool:
            whole_ms = way_ms([await measure(pool, ping, i) for i in range(PINGS)])

            def keep_row(row: Row) -> None:
                row = streamed(row)
                writer.append(row if whole_ms is None else beyond(row, whole_ms))
                within(min(1.0, len(writer.rows) / (act.n + COLD)))

            sender = Sender(pool, chat, load, keep_row, now_ns(), pairs=lambda _: PAIR)
            blocks = [await sender.block(0)]
        rows, unknown = steady(writer.rows), Settled(0.0, None)
        lived = load_of(load, blocks, writer.rows, unknown)
        writer.finish(load=lived, reasons=reasons(lived, rows, blocks, unknown))
    return open_run(root / act.key)


def _head(act: Act, url: str, load: LoadTable) -> Head:
    now = datetime.now(UTC)
    return Head(
        id=act.key,
        kind="bench",
        scenario=f"bottleneck-{act.key}",
        question="Where does the time of one short answer go?",
        case=act.place.name,
        target=url,
        protocol="openai-chat",
        model="scripted",
        began=now,
        best_before=(now + BEST_BEFORE).date(),
        plan={"place": act.place.to_json(), "load": load.model_dump(mode="json")},
    )


def streamed(row: Row) -> Row:
    """A stream that was cut off was being generated since its first byte; a whole one says so itself.

    One whose last piece came in the very moment of the limit has a part of each name already: both stay.
    """
    if row.outcome != "timeout":
        return row
    names = {"infer": "prefill", "transfer": "generate"}
    told = {old: new for old, new in names.items() if new not in row.parts}
    return replace(row, parts={told.get(name, name): part for name, part in row.parts.items()})
