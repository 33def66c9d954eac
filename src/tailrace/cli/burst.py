"""`tailrace burst`: a crowd at one door, and a table of what each caller saw."""

import asyncio
import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from tailrace.bench.crowd import CROWD_MAX, DOORS, Caller, fire
from tailrace.bench.http import CannotConnect
from tailrace.bench.reviews import reviews
from tailrace.cli.console import err, fail, out

Url = Annotated[str, typer.Argument(help="The API, e.g. http://127.0.0.1:8000/api")]
Count = Annotated[int, typer.Argument(min=1, max=CROWD_MAX, help="How many at once.")]
Door = Annotated[str, typer.Option(help=f"Which door: {', '.join(DOORS)}.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object per caller instead of a table.")
]


def burst(url: Url, n: Count = 12, door: Door = "limited", as_json: Json = False) -> None:
    """Send N reviews to one door at the same moment and show what each caller saw.

    Examples:
      tailrace burst http://127.0.0.1:8000/api 12
      tailrace burst http://127.0.0.1:8000/api 12 --door queue
      tailrace burst http://127.0.0.1:8000/api 30 --door batched --json | jq .round_trip_ms

    """
    if door not in DOORS:
        fail(f"there is no door {door}; choose one of {', '.join(DOORS)}")
    try:
        callers = asyncio.run(_collect(url, door, reviews(n)))
    except CannotConnect as error:
        fail(f"{error}; is the box running? start it with: tailrace serve")
    if as_json:
        for caller in callers:
            out.print_json(json.dumps(_row(caller), ensure_ascii=False), indent=None)
    else:
        out.print(_table(callers))
        out.print(_summary(callers, door))


async def _collect(url: str, door: str, texts: list[str]) -> list[Caller]:
    callers: dict[int, Caller] = {}
    with Progress(console=err, transient=True) as bars:
        bar = bars.add_task(f"{len(texts)} at the {door} door", total=len(texts))
        async for caller in fire(url, door, texts):
            callers[caller.i] = caller
            bars.update(bar, completed=sum(c.done for c in callers.values()))
    return [callers[i] for i in sorted(callers)]


def _row(caller: Caller) -> dict[str, Any]:
    """One caller's numbers: waited and inference as the server says, the rest by our own clock."""
    timing, ticket = caller.timing, caller.ticket or {}
    body = caller.body if isinstance(caller.body, dict) else {}
    source = ticket if caller.ticket else body
    topics = (ticket.get("result") or {}).get("topics") or body.get("topics") or []
    headers = caller.headers
    return {
        "i": caller.i + 1,
        "text": caller.text,
        "status": caller.status,
        "cache": headers.get("x-cache"),
        "batch_size": headers.get("x-batch-size"),
        "waited_ms": source.get("waited_ms"),
        "inference_ms": source.get("inference_ms"),
        "answered_ms": caller.round_trip_ms,
        "round_trip_ms": caller.done_ms,
        "server_timing_ms": timing,
        "retry_after_s": headers.get("retry-after"),
        "retry_after_ms": headers.get("retry-after-ms"),
        "position": (caller.body or {}).get("position") if caller.ticket else None,
        "eta_s": (caller.body or {}).get("eta_seconds") if caller.ticket else None,
        "topic": topics[0] if topics else None,
        "problem": body.get("detail") if caller.status >= 400 else None,
        "error": caller.error or None,
    }


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _table(callers: list[Caller]) -> Table:
    table = Table(caption="ms; wait and inference as the server says, round trip by this clock")
    for name in ("#", "review", "answer"):
        table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=34)
    for name in ("wait", "inference", "round trip"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column("first topic", no_wrap=True)
    for caller in callers:
        row = _row(caller)
        topic = row["topic"]
        table.add_row(
            str(row["i"]),
            row["text"],
            _answer(row),
            _ms(row["waited_ms"]),
            _ms(row["inference_ms"]),
            _ms(row["round_trip_ms"]),
            f"{topic['label']} {topic['score']:.2f}" if topic else "",
        )
    return table


def _answer(row: dict[str, Any]) -> str:
    if not row["status"]:
        return f"[red]{escape(row['error'] or 'no answer')}[/]"
    if row["error"]:
        return f"[red]{row['status']} · {escape(row['error'])}[/]"
    words = [str(row["status"])]
    if row["retry_after_s"] and row["status"] >= 400:
        words.append(f"come back in {row['retry_after_s']} s")
    if row["cache"] == "hit":
        words.append("from cache")
    if row["batch_size"] not in {None, "1"}:
        words.append(f"batch of {row['batch_size']}")
    if row["eta_s"] is not None:
        words.append(f"place {row['position']}, in {row['eta_s']:.1f} s")
    color = "green" if row["status"] < 400 else "yellow" if row["status"] in {429, 503} else "red"
    return f"[{color}]{' · '.join(words)}[/]"


def _summary(callers: list[Caller], door: str) -> str:
    answered = [caller.done_ms for caller in callers if caller.answered and caller.done_ms]
    turned = [c.round_trip_ms for c in callers if c.status >= 400 and c.round_trip_ms]
    words = [f"{door}: {len(answered)} of {len(callers)} answered"]
    if answered:
        words.append(f"first after {min(answered):,.0f} ms, last after {max(answered):,.0f} ms")
    if turned:
        words.append(f"{len(turned)} turned away, told within {max(turned):,.0f} ms")
    return "; ".join(words)
