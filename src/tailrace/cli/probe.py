"""`tailrace probe`: where the time of a request goes, part by part."""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from contextlib import ExitStack, aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.table import Table

from tailrace.cli.asking import (
    QUERY,
    Batch,
    Ca,
    Header,
    KeyEnv,
    Kind,
    Model,
    Output,
    ProviderName,
    Query,
    Rate,
    Reasoning,
    Stream,
    Text,
    Texts,
    Timeout,
    asked_of,
    texts_of,
)
from tailrace.cli.console import INTERRUPTED, err, fail, out, progress_bar
from tailrace.cli.probe_report import sentences, table, unserved
from tailrace.latency.address import BadAddress, address
from tailrace.latency.dialing import trust
from tailrace.latency.http1 import BadHeader
from tailrace.latency.physics import Place, UnknownPlace, place
from tailrace.latency.pool import Pool
from tailrace.latency.probing import REQUESTS_MAX, Plan
from tailrace.latency.probing import probe as probing
from tailrace.latency.queue_estimate import Undecided, estimate_queue
from tailrace.latency.self_test import TOLERANCE_MS, Reading
from tailrace.latency.self_test import self_test as self_testing
from tailrace.latency.targets.choosing import CannotChoose, Wanted, choose
from tailrace.latency.targets.port import Target
from tailrace.latency.targets.providers import CannotAsk
from tailrace.wire.record import Row

Url = Annotated[str, typer.Argument(help="What to measure: the address of an entry, or of an API.")]
Count = Annotated[int, typer.Option("--n", min=1, max=REQUESTS_MAX, help="Requests that count.")]
Cold = Annotated[int, typer.Option(min=0, help="Requests before them, kept apart.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="A new connection for every request.")]
Method = Annotated[str | None, typer.Option(help="Of a plain request.")]
Data = Annotated[str | None, typer.Option(help="The body of a plain request, or @FILE.")]
Here = Annotated[
    str | None,
    typer.Option("--here", help="Where this machine is: a cloud region, a city, or LAT,LON."),
]
There = Annotated[
    str | None, typer.Option("--there", help="Where the server is, in the same words.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Also write the rows, one JSON object per line.")
]
Json = Annotated[bool, typer.Option("--json", help="Rows as JSON lines instead of a table.")]
SelfTest = Annotated[
    bool,
    typer.Option(
        "--self-test", help="Measure servers of known delay instead, and say how true it reads."
    ),
]


def probe(
    target: Url = "",
    kind: Kind = None,
    model: Model = "",
    n: Count = 20,
    cold: Cold = 1,
    rate: Rate = None,
    timeout: Timeout = 60.0,
    fresh: Fresh = False,
    text: Text = None,
    texts: Texts = None,
    query: Query = QUERY,
    batch: Batch = None,
    stream: Stream = True,
    output_max: Output = 64,
    effort: Reasoning = None,
    provider: ProviderName = None,
    key_env: KeyEnv = None,
    header: Header = None,
    method: Method = None,
    data: Data = None,
    ca: Ca = None,
    here: Here = None,
    there: There = None,
    out_file: Out = None,
    as_json: Json = False,
    self_test: SelfTest = False,
) -> None:
    """Measure where the time of a request goes: parts that add up to the whole, and how each is known.

    Examples:
      tailrace probe http://127.0.0.1:8000/api/limited/predict
      tailrace probe http://127.0.0.1:8100/v1/embeddings --model multilingual-e5-small --batch 8
      tailrace probe https://api.openai.com/v1/chat/completions --model gpt-4o-mini --n 100 --rate 0.5
      tailrace probe --self-test

    """
    if self_test:
        _self_test(as_json=as_json)
        return
    if not target:
        fail("say what to measure: tailrace probe ADDRESS; or try tailrace probe --self-test")
    try:
        wanted = Wanted(
            url=target,
            kind=kind,
            model=model,
            texts=texts_of(text, texts),
            query=query,
            batch=batch,
            stream=stream,
            output_max=output_max,
            **asked_of(target, provider, key_env, effort, header),
            method=method,
            body=_data(data),
        )
        address(target)
        chosen = choose(wanted)
        chosen.ask(0)
        places = (place(here) if here else None, place(there) if there else None)
        tls = trust(str(ca)) if ca else None
    except (BadAddress, CannotAsk, CannotChoose, UnknownPlace) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or ca}: {error.strerror or error}")
    plan = Plan(n, cold, rate, timeout, fresh)
    rows, interrupted = _measured(chosen, plan, tls, out_file, as_json=as_json)
    if rate is not None:
        rows = _with_queue(rows, out_file)
    _tell(rows, places, as_json=as_json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _data(given: str | None) -> bytes:
    if given is None:
        return b""
    return Path(given[1:]).read_bytes() if given.startswith("@") else given.encode()


def _measured(
    target: Target, plan: Plan, tls: ssl.SSLContext | None, file: Path | None, *, as_json: bool
) -> tuple[list[Row], bool]:
    """The rows, and whether somebody pressed Ctrl-C before the last; kept and printed as they come."""
    rows: list[Row] = []
    with ExitStack() as stack:
        try:
            kept = stack.enter_context(file.open("wb")) if file is not None else None
        except OSError as error:
            fail(f"{file}: {error.strerror}")
        tell = stack.enter_context(progress_bar())

        def take(row: Row) -> None:
            rows.append(row)
            tell(target.name[-32:], len(rows) / (plan.n + plan.cold))
            if kept is not None:
                kept.write(row.to_line())
                kept.flush()
            if as_json:
                sys.stdout.write(row.to_line().decode())
                sys.stdout.flush()

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_take_all(target, plan, tls, take))
        except KeyboardInterrupt:
            return rows, True
        except BadHeader as error:
            fail(str(error))
    return rows, False


def _with_queue(rows: list[Row], file: Path | None) -> list[Row]:
    """The rows with an estimated queue where none is declared and one can be told; kept so, too."""
    found = estimate_queue(rows)
    if isinstance(found, Undecided):
        if found.why is not None:
            err.print(found.why, soft_wrap=True, markup=False)
        return rows
    err.print(str(found), soft_wrap=True, markup=False)
    if file is not None:
        file.write_bytes(b"".join(row.to_line() for row in found.rows))
    return list(found.rows)


async def _take_all(
    target: Target, plan: Plan, tls: ssl.SSLContext | None, take: Callable[[Row], None]
) -> None:
    async with Pool(tls=tls) as pool, aclosing(probing(pool, target, plan)) as rows:
        async for row in rows:
            take(row)


def _tell(rows: list[Row], places: tuple[Place | None, Place | None], *, as_json: bool) -> None:
    if (why := unserved(rows)) is not None:
        fail(why)
    where = err if as_json else out
    parts = table(rows)
    if parts is not None and not as_json:
        out.print(parts)
    for sentence in sentences(rows, *places):
        where.print(sentence, soft_wrap=True)


def _self_test(*, as_json: bool) -> None:
    """Exit code 2 where this machine, now, does not read true."""
    try:
        with progress_bar() as tell, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            readings = runner.run(self_testing(lambda share: tell("self-test", share)))
    except OSError as error:
        fail(f"the self-test cannot run: {error}")
    if as_json:
        for reading in readings:
            sys.stdout.write(json.dumps({**asdict(reading), "good": reading.good}) + "\n")
    else:
        out.print(_readings(readings))
    if not all(reading.good for reading in readings):
        fail(
            f"this machine is too busy to be measured on: a reading is off by more than {TOLERANCE_MS} ms"
        )


def _readings(readings: list[Reading]) -> Table:
    made = Table(caption="ms, medians; off: what is read beyond what the server held the request")
    for name in ("delay", "read", "off", "n"):
        made.add_column(name, justify="right")
    for one in readings:
        style = "green" if one.good else "red"
        made.add_row(
            f"{one.delay_ms:g}", f"{one.read_ms:.3f}", f"[{style}]{one.off_ms:.3f}[/]", str(one.n)
        )
    return made
