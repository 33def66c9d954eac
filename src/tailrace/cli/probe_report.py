"""How a probe's rows are told: a table of parts, and the sentences that a person needs to believe it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from tailrace.latency.floor import TO_THE_EDGE
from tailrace.latency.partition import UNTOLD
from tailrace.latency.physics import Place, distance
from tailrace.latency.runs.summary import Figures, figures, steady
from tailrace.latency.sample import BadSample, sample
from tailrace.wire.record import Part, Row

NOTES_MAX = 3
"""The most different errors that are spelled out."""
NEXT_STEPS = (
    (range(200, 300), "the answer is not of this kind; choose another with --kind"),
    (range(300, 400), "the answer is a way elsewhere; ask the address that it leads to"),
    ((401, 403, 407), "name the environment variable that holds the key with --key-env"),
    ((404, 410), "nothing is at this path; look at the address, and at --kind and --model"),
    ((405,), "the method is not taken there; give another with --method, or another --kind"),
    (
        (400, 413, 415, 422),
        "the body is not what the server takes; look at --kind, --model, --text",
    ),
    ((429,), "the server turns callers away; ask more slowly with --rate"),
    (range(500, 600), "the server is in trouble; look at its log, or ask again later"),
)
"""What to do about statuses."""


def table(rows: Sequence[Row]) -> Table | None:
    """The parts of the answered steady rows; None where there are none."""
    answered = [row for row in steady(rows) if row.outcome == "ok"]
    try:
        total, parts = figures(sample(rows))
    except BadSample:
        return None
    made = Table(
        caption="ms; a dash where too few rows can tell. p50 and p95 of parts do not add up, means do;\n"
        "in worst 5 %: the part's mean over the requests whose total is among the slowest 5 %"
    )
    made.add_column("part", no_wrap=True)
    made.add_column("source", no_wrap=True)
    for name in ("mean", "share", "p50", "p95", "in worst 5 %", "floor"):
        made.add_column(name, justify="right", no_wrap=True)
    for name, part in parts.items():
        floor = min((row.parts[name].ms for row in answered if name in row.parts), default=0.0)
        made.add_row(name, _sources(part), *_cells(part, floor))
    made.add_section()
    floor = min((row.wall_ms for row in answered), default=0.0)
    made.add_row("[bold]total[/]", "measured", *_cells(total, floor), style="bold")
    return made


def _sources(part: Figures) -> str:
    return ", ".join(part.sources)


def _cells(part: Figures, floor: float) -> list[str]:
    return [
        ms(part.mean),
        f"{part.share:.0%}",
        ms(part.p50),
        ms(part.p95),
        ms(part.tail),
        ms(floor),
    ]


def ms(value: float | None) -> str:
    """Milliseconds with three significant digits; a dash for what is not told."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return (
        f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
        if abs(value) >= 0.1
        else f"{value:.3f}"
    )


def unserved(rows: Sequence[Row]) -> str | None:
    """One line on why no request was answered as it should be, and what to do next; None where one was."""
    counted = steady(rows) or rows
    if not counted or any(row.outcome == "ok" or row.censored for row in counted):
        return None
    (status, error), count = Counter(
        (row.status, str(row.detail.get("error") or "")) for row in counted
    ).most_common(1)[0]
    if status is None:
        what = error or "no answer came"
        return f"{what}; none of {len(rows)} requests was answered"
    said = f" ({error})" if error else ""
    return f"{count} of {len(counted)} requests got {status}{said}: {_next_step(status)}"


def _next_step(status: int) -> str:
    for known, step in NEXT_STEPS:
        if status in known:
            return step
    return "see what the server says, and give what it wants"


def sentences(
    rows: Sequence[Row], here: Place | None = None, there: Place | None = None
) -> Iterator[str]:
    """What the table does not say, each in one line of markup."""
    counted = steady(rows)
    outcomes = Counter(row.outcome for row in counted)
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    cold = len(rows) - len(counted)
    yield f"{len(counted)} requests: {told}" + (
        f"; {cold} before them kept apart (cold)" if cold else ""
    )
    yield from _cut_off(counted)
    yield from _errors(counted)
    yield from _leader(counted)
    yield from _path(counted, here, there)
    yield from _odd(counted)


def _cut_off(rows: Sequence[Row]) -> Iterator[str]:
    cut = [row.wall_ms for row in rows if row.censored]
    if cut:
        yield f"{len(cut)} of {len(rows)} were cut off: their time is >= {ms(min(cut))} ms, not a latency"


def _errors(rows: Sequence[Row]) -> Iterator[str]:
    said = Counter(str(row.detail["error"]) for row in rows if row.detail.get("error"))
    for error, count in said.most_common(NOTES_MAX):
        yield f"[red]{count} x {escape(error)}[/]"


def _leader(rows: Sequence[Row]) -> Iterator[str]:
    answered = [row for row in rows if row.outcome == "ok"]
    try:
        _, parts = figures(sample(rows))
    except BadSample:
        return
    leading = max(parts, key=lambda name: parts[name].mean)
    yield f"[bold]{leading}[/] leads: {parts[leading].share:.0%} of the mean"
    others = [row.parts["other"] for row in answered if "other" in row.parts]
    if others and leading == "other" and any(part.note == UNTOLD for part in others):
        yield f"the server declares nothing of its time: {UNTOLD}"


def _path(rows: Sequence[Row], here: Place | None, there: Place | None) -> Iterator[str]:
    nets = [row.parts["net"] for row in rows if "net" in row.parts]
    if not nets:
        return
    edges = Counter(str(row.detail["edge"]) for row in rows if row.detail.get("edge"))
    if edges and any(_to_the_edge(part) for part in nets):
        header = escape(edges.most_common(1)[0][0])
        yield f"net is the way {TO_THE_EDGE} (seen by {header}); what lies beyond is in other"
    if here is not None and there is not None:
        shortest = min(part.ms for part in nets)
        yield distance(here, there, shortest).sentence(shortest)


def _to_the_edge(part: Part) -> bool:
    return part.note is not None and part.note.startswith(TO_THE_EDGE)


def _odd(rows: Sequence[Row]) -> Iterator[str]:
    causes = Counter(
        str(row.detail["inconsistent"]) for row in rows if row.detail.get("inconsistent")
    )
    for cause, count in causes.most_common(NOTES_MAX):
        yield f"[yellow]{count} rows are inconsistent: {escape(cause)}[/]"
    hits = sum(row.detail.get("cache") == "hit" for row in rows)
    if hits:
        yield f"[yellow]{hits} answers came out of the server's cache[/]"
    retried = sum(bool(row.detail.get("retried")) for row in rows)
    if retried:
        yield f"{retried} kept connections had been closed by the server; these requests were sent again"
    flags = Counter(
        str(row.detail["reasoning_flag"]) for row in rows if row.detail.get("reasoning_flag")
    )
    for flag, count in flags.items():
        tokens = [
            row.detail.get("reasoning_tokens") for row in rows if row.detail.get("reasoning_flag")
        ]
        counts = [count for count in tokens if isinstance(count, int)]
        seen = f" ({max(counts)} tokens at most)" if counts else ""
        yield f"[yellow]reasoning {flag}: {count} of {len(rows)}{seen}[/]"
