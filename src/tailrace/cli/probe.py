"""`tailrace probe`: where the time of a request goes, part by part."""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
import uvloop
from rich.table import Table

from tailrace.bench.reviews import reviews
from tailrace.cli.console import err, fail, out, progress_bar
from tailrace.cli.probe_report import sentences, table, unserved
from tailrace.latency.address import BadAddress, address
from tailrace.latency.dialing import trust
from tailrace.latency.http1 import BadHeader
from tailrace.latency.measure import KEY_HEADERS
from tailrace.latency.physics import Place, UnknownPlace, place
from tailrace.latency.pool import Pool
from tailrace.latency.probing import REQUESTS_MAX, Plan
from tailrace.latency.probing import probe as probing
from tailrace.latency.queue_estimate import Undecided, estimate_queue
from tailrace.latency.self_test import TOLERANCE_MS, Reading
from tailrace.latency.self_test import self_test as self_testing
from tailrace.latency.targets.choosing import KINDS, CannotChoose, Wanted, choose
from tailrace.latency.targets.port import Target
from tailrace.latency.targets.providers import (
    OWN,
    PROVIDERS,
    CannotAsk,
    Effort,
    key_headers,
    provider_of,
)
from tailrace.latency.targets.providers import reasoning as reasoning_body
from tailrace.wire.record import Row

TEXTS = 48
"""Different texts that are sent where nobody gives any."""
QUERY = "직원이 친절한 식당"
INTERRUPTED = 130

Url = Annotated[str, typer.Argument(help="What to measure: the address of an entry, or of an API.")]
Kind = Annotated[
    str | None,
    typer.Option(help=f"What is spoken there: {', '.join(KINDS)}. Default: by the path."),
]
Model = Annotated[str, typer.Option(help="The model's name, where the API wants one.")]
Count = Annotated[int, typer.Option("--n", min=1, max=REQUESTS_MAX, help="Requests that count.")]
Cold = Annotated[int, typer.Option(min=0, help="Requests before them, kept apart.")]
Rate = Annotated[
    float | None,
    typer.Option(
        min=0.001, help="Requests per second, evenly spaced. Default: one after the other."
    ),
]
Timeout = Annotated[float, typer.Option(min=0.001, help="Seconds until a request is given up.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="A new connection for every request.")]
Text = Annotated[list[str] | None, typer.Option("--text", help="What to send; may be repeated.")]
Texts = Annotated[Path | None, typer.Option(help="A file with one text per line.")]
Query = Annotated[str, typer.Option(help="What rerank ranks for.")]
Batch = Annotated[int | None, typer.Option(min=1, help="Texts per request (embeddings, rerank).")]
Stream = Annotated[bool, typer.Option("--stream/--no-stream", help="Whether a chat streams.")]
Output = Annotated[int, typer.Option(min=1, help="The most tokens of a chat's answer.")]
Reasoning = Annotated[
    str | None,
    typer.Option(
        "--reasoning",
        help=f"How much a chat may think: {', '.join(get_args(Effort))}. Default: not said.",
    ),
]
ProviderName = Annotated[
    str | None,
    typer.Option(help=f"Who serves: {', '.join(p.name for p in PROVIDERS)}. Default: by the host."),
]
KeyEnv = Annotated[str | None, typer.Option(help="The environment variable that holds the key.")]
Header = Annotated[
    list[str] | None, typer.Option(help="'Name: value'; may be repeated. No keys here.")
]
Method = Annotated[str | None, typer.Option(help="Of a plain request.")]
Data = Annotated[str | None, typer.Option(help="The body of a plain request, or @FILE.")]
Ca = Annotated[
    Path | None, typer.Option("--ca", help="Certificates to trust instead of the system's.")
]
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


def asked_of(
    url: str,
    provider: str | None,
    key_env: str | None,
    effort: str | None,
    header: list[str] | None,
) -> dict[str, Any]:
    """Whom it is for, with the key out of the environment; raises CannotAsk."""
    who = provider_of(url, provider)
    known = provider is not None or who is not OWN
    key = key_headers(who, key_env) if known or key_env else {}
    if effort is not None:
        reasoning_body(who, cast("Effort", effort))
    return {"provider": who, "effort": effort, "headers": {**_headers(header or ()), **key}}


def _headers(given: Sequence[str]) -> dict[str, str]:
    headers = {}
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not name.strip():
            raise CannotAsk(f"{name.strip()!r} is no header: write 'Name: value'")
        if name.strip().lower() in KEY_HEADERS:
            raise CannotAsk(
                f"a key does not belong on the command line ({name.strip()}): put it into the "
                "environment and name the variable with --key-env"
            )
        headers[name.strip()] = value.strip()
    return headers


def texts_of(given: list[str] | None, file: Path | None) -> list[str]:
    """What to send, from words and a file of lines; raises CannotChoose and OSError."""
    if file is None:
        return given or reviews(TEXTS)
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise CannotChoose(f"{file} is not UTF-8 text") from None
    found = [*(given or ()), *filter(None, lines)]
    if not found:
        raise CannotChoose(f"{file} holds no text")
    return found


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
