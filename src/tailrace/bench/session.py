"""Carries a scenario out: every case becomes a run of its own; cases take turns, and the first goes twice.

The second go of the first (A/A) says what difference the machine makes of nothing.
"""

import asyncio
import gc
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np

from tailrace.bench.asking import bare, is_loopback, pairs, target_of
from tailrace.bench.errors import BadScenario, NoAnswer
from tailrace.bench.generator import Sender, Sent
from tailrace.bench.scenario import Case, Scenario, cases
from tailrace.bench.steady import Settled, settled
from tailrace.bench.verdict import load_of, notes, reasons
from tailrace.latency.exchange import now_ns
from tailrace.latency.pool import Pool
from tailrace.latency.queue_estimate import Undecided, estimate_queue
from tailrace.latency.runs import Head, RunWriter, Summary, named_folder, new_folder
from tailrace.latency.runs.summary import steady
from tailrace.wire.record import Row

AA_BLOCK = -1
"""The number of the block that the first case goes twice for."""
PRIORITY = -10
"""The niceness of a generator: one that waits for a processor measures its own waiting."""
WHOLE_COLLECTIONS_NEVER = 1_000_000
"""Rows are many and live long: looking through all of them takes longer than a request."""
STOPPED = "stopped by hand; what it measured until then is kept"


@dataclass(slots=True)
class Progress:
    """How far a session is, for whoever shows it."""

    case: str
    block: int
    blocks: int
    sent: int = 0
    inside: int = 0
    p50_ms: float | None = None
    share: float = 0.0
    """Of the whole session, by blocks and by time within the block."""


Tell = Callable[[Progress], None]


@dataclass(slots=True)
class Outcome:
    """What a session left behind."""

    folder: Path
    runs: list[tuple[Path, Summary]] = field(default_factory=list)
    aa_noise: float | None = None
    """By which share the medians of the two goes of the first case differ."""
    stopped: bool = False

    @property
    def valid(self) -> bool:
        """Whether every run can be believed."""
        return bool(self.runs) and all(summary.validity.valid for _, summary in self.runs)


class _Live:
    """A case under way."""

    def __init__(self, case: Case, writer: RunWriter, sender: Sender) -> None:
        self.case, self.writer, self.sender = case, writer, sender
        self.blocks: list[Sent] = []
        self.trouble: str | None = None


async def run_scenario(
    scenario: Scenario, root: Path, tell: Tell, *, remote: bool = False, name: str | None = None
) -> Outcome:
    """Run every case and keep it below `root`; what stops it early keeps what was measured.

    The folder is named after the moment and the scenario, or `name`.

    Raises:
        BadScenario: it cannot be run as it is.
        NoAnswer: nobody answers, before anything was measured.

    """
    wanted = cases(scenario)
    salt = secrets.token_hex(2)
    targets = [target_of(case, salt) for case in wanted]
    for case in wanted:
        if not remote and not is_loopback(case.target.url):
            raise BadScenario(
                f"{bare(case.target.url)} is not on this machine; say --remote if you may load it"
            )
    for url in dict.fromkeys(case.target.url for case in wanted):
        await _greet(url)
    began = datetime.now(UTC)
    folder = new_folder(root, scenario.name, began) if name is None else named_folder(root, name)
    outcome = Outcome(folder)
    zero_ns = now_ns()
    async with AsyncExitStack() as stack:
        live = []
        for number, (case, target) in enumerate(zip(wanted, targets, strict=True)):
            head = _head(scenario, case, began, outcome.folder, number, len(wanted))
            folder = (
                outcome.folder / head.id.rpartition("/")[2] if len(wanted) > 1 else outcome.folder
            )
            writer = stack.enter_context(RunWriter(folder, head))
            pool = await stack.enter_async_context(Pool())
            sender = Sender(pool, target, case.load, writer.append, zero_ns, pairs(case))
            sender.index = _first_index(scenario, case, number, len(wanted))
            live.append(_Live(case, writer, sender))
        try:
            with _undisturbed():
                await _blocks(scenario, live, tell)
        except asyncio.CancelledError:
            outcome.stopped = True
        except NoAnswer as none:
            if not any(one.writer.rows for one in live):
                raise
            live[0].trouble = live[0].trouble or str(none)
        finally:
            outcome.aa_noise = _aa_noise(live[0].writer.rows) if scenario.compares else None
            outcome.runs = [
                (one.writer.path, _finish(one, stopped=outcome.stopped)) for one in live
            ]
    return outcome


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No whole garbage collections, and before others on the processor where the system allows it."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*thresholds[:2], WHOLE_COLLECTIONS_NEVER)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, PRIORITY))
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


async def _greet(url: str) -> None:
    """Is anybody there? A connection, and nothing sent."""
    async with Pool(connections=1) as pool:
        failed = await pool.warm(url.replace("{text}", "x"), 1)
    if failed is not None and failed.failure is not None:
        raise NoAnswer(failed.failure.message)


async def _blocks(scenario: Scenario, live: Sequence[_Live], tell: Tell) -> None:
    order = [(number, one) for number in range(scenario.rounds) for one in live]
    if scenario.compares:
        order.insert(0, (AA_BLOCK, live[0]))
    for done, (number, one) in enumerate(order):
        progress = Progress(one.case.name, done + 1, len(order), share=done / len(order))
        async with _shown(one, progress, tell):
            try:
                one.blocks.append(Sent())
                await one.sender.block(number, one.blocks[-1])
            except NoAnswer as none:
                one.trouble = str(none)
                if not one.sender.answered:
                    raise


@asynccontextmanager
async def _shown(one: _Live, progress: Progress, tell: Tell) -> AsyncIterator[None]:
    began_ns, before = now_ns(), progress.share
    load = one.case.load
    planned_s = load.length.value if load.length.unit == "s" else None

    async def show() -> None:
        while True:
            rows = one.writer.rows
            progress.sent, progress.inside = len(rows), one.sender.inside
            latest = [row.wall_ms for row in rows[-200:] if row.outcome == "ok"]
            progress.p50_ms = median(latest) if latest else None
            if planned_s:
                within = min(1.0, (now_ns() - began_ns) / 1e9 / planned_s)
                progress.share = before + within / progress.blocks
            tell(progress)
            await asyncio.sleep(1.0)

    task = asyncio.create_task(show())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _first_index(scenario: Scenario, case: Case, number: int, count: int) -> int:
    """Points of a grid ask different texts, so that none warms a cache for the next; places the same."""
    places = 1 + len(scenario.against)
    point, points = number // places, count // places
    return point * (case.ask.distinct // points) // case.target.batch


def _finish(one: _Live, *, stopped: bool) -> Summary:
    """Cut what was still warm-up, judge, and write the summary."""
    writer, load = one.writer, one.case.load
    found = Settled(0.0, None)
    if load.kind in {"poisson", "constant", "closed"} and len(one.blocks) == 1:
        measured = [row for row in steady(writer.rows) if row.outcome == "ok"]
        at, wall = (np.array([getattr(r, n) for r in measured]) for n in ("at_s", "wall_ms"))
        found = settled(at, wall)
        if found.steady is not None and measured and found.from_s > min(at):
            writer.rewrite([_cut(row, found.from_s) for row in writer.rows])
            _shorten(one, found.from_s)
    said = _estimate(writer)
    rows = steady(writer.rows)
    lived = load_of(load, one.blocks, writer.rows, found)
    why = [one.trouble] if one.trouble else []
    why += [STOPPED] if stopped else reasons(lived, rows, one.blocks, found)
    told = Counter(str(r.detail["fingerprint"]) for r in rows if r.detail.get("fingerprint"))
    if told:
        writer.tell_model(told.most_common(1)[0][0])
    return writer.finish(load=lived, reasons=why, notes=[*notes(rows, one.blocks), *said])


def _estimate(writer: RunWriter) -> list[str]:
    """Put a queue into the rows that have none declared, where it can be told; what to say of it."""
    found = estimate_queue(writer.rows)
    if isinstance(found, Undecided):
        return [found.why] if found.why is not None else []
    writer.rewrite(found.rows)
    return [str(found)]


def _cut(row: Row, from_s: float) -> Row:
    return replace(row, phase="warm-up") if row.phase == "steady" and row.at_s < from_s else row


def _shorten(one: _Live, from_s: float) -> None:
    """The block's own account begins with its steady phase."""
    (sent,) = one.blocks
    cut = sent.offered - len(steady(one.writer.rows))
    sent.offered, sent.on_time = sent.offered - cut, max(0, sent.on_time - cut)
    sent.steady_ns = one.sender.zero_ns + round(from_s * 1e9)
    sent.lag = sent.lag.within(sent.steady_ns, sent.ended_ns)


def _aa_noise(rows: Sequence[Row]) -> float | None:
    """How far apart the medians of the first case's two first goes are."""
    halves = [
        [r.wall_ms for r in rows if r.detail.get("block") == block and r.outcome == "ok"]
        for block in (AA_BLOCK, 0)
    ]
    if not all(halves):
        return None
    first, second = (median(half) for half in halves)
    return abs(first - second) / second if second else None


def _head(
    scenario: Scenario, case: Case, began: datetime, folder: Path, number: int, count: int
) -> Head:
    below = (
        f"/{number + 1:02}-{case.name.replace(', ', '-').replace(' ', '-')}" if count > 1 else ""
    )
    plan = scenario.model_dump(mode="json", exclude={"target", "ask", "load", "grid", "against"})
    if plan["cost"] is None:
        del plan["cost"]
    plan |= case.model_dump(mode="json", include={"target", "ask", "load"})
    plan["target"]["url"] = bare(case.target.url)
    return Head(
        id=f"{folder.name}{below}",
        kind="bench",
        scenario=scenario.name,
        question=scenario.question,
        case=case.name,
        target=bare(case.target.url),
        protocol=case.target.protocol,
        model=case.target.model or None,
        began=began,
        best_before=(began + timedelta(days=scenario.best_before)).date(),
        plan=plan,
    )
