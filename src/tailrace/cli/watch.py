"""`tailrace watch`: measure again and again, keep the history, and say when an answer no longer holds."""

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer
import uvloop
from rich.markup import escape

from tailrace.bench.errors import BadScenario
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
from tailrace.cli.bench import Changes, Remote
from tailrace.cli.console import INTERRUPTED, err, fail, out
from tailrace.cli.probe_report import ms
from tailrace.cli.watch_subject import scenario_subject, target_subject
from tailrace.latency.address import BadAddress, address
from tailrace.latency.http1 import BadHeader
from tailrace.latency.probing import REQUESTS_MAX, Plan
from tailrace.latency.runs import BadRun
from tailrace.latency.runs.folder import DEFAULT_ROOT
from tailrace.latency.targets.choosing import CannotChoose, Wanted
from tailrace.latency.targets.providers import CannotAsk
from tailrace.latency.watch.changes import NoRuptures, need_ruptures
from tailrace.latency.watch.gauges import Gauges
from tailrace.latency.watch.history import BadHistory, History
from tailrace.latency.watch.rounds import RUNS_MAX, Event, Watch
from tailrace.latency.watch.webhook import Webhook

EXPIRED = 1
"""The exit code of --once where the answer no longer holds."""
What = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="An address, as for probe; or a scenario, as for bench run."
    ),
]
Every = Annotated[
    str, typer.Option(help="Between two rounds, give or take a tenth: 30s, 15m, 24h.")
]
Times = Annotated[int | None, typer.Option(min=1, help="So many rounds. Default: until Ctrl-C.")]
Once = Annotated[
    bool, typer.Option("--once", help="One round, for cron: exit code 1 where expired.")
]
Name = Annotated[str | None, typer.Option("--name", help="The watch's folder below --root.")]
Root = Annotated[Path, typer.Option("--root", help="The folder that holds the runs.")]
Count = Annotated[int, typer.Option("--n", min=1, max=REQUESTS_MAX, help="Requests of a round.")]
Days = Annotated[int, typer.Option("--best-before", min=1, help="Days that an answer keeps.")]
Keep = Annotated[
    int, typer.Option("--keep", min=1, help="Runs whose rows are kept; older leave a line.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per event and line.")]
Hook = Annotated[str | None, typer.Option("--webhook", help="Where news are posted as JSON.")]
HookEnv = Annotated[
    str | None,
    typer.Option("--webhook-env", help="The environment variable that holds its address."),
]
HookKey = Annotated[
    str | None, typer.Option("--webhook-key-env", help="The one that holds its bearer token.")
]
Metrics = Annotated[
    Path | None, typer.Option("--metrics-file", help="A .prom file for node_exporter's collector.")
]


@dataclass
class _Teller:
    """Says each event, wherever it is wanted."""

    as_json: bool
    webhook: Webhook | None
    gauges: Gauges | None
    expired: bool = False
    down: bool = False

    async def tell(self, event: Event) -> None:
        self.expired = self.expired or bool(event.point.expired)
        self.down = self.down or event.point.gap is not None
        if self.as_json:
            sys.stdout.write(orjson.dumps(event.to_json()).decode() + "\n")
            sys.stdout.flush()
        else:
            for line in _lines(event):
                out.print(line, soft_wrap=True)
        if self.gauges is not None:
            try:
                self.gauges.write(event)
            except OSError as error:
                err.print(f"[yellow]the metrics file was not written: {error.strerror}[/]")
        if self.webhook is not None and event.news:
            wrong = await self.webhook.post(event)
            if wrong is not None:
                err.print(f"[yellow]{escape(wrong)}[/]", soft_wrap=True)


def watch(
    target: What,
    every: Every = "15m",
    times: Times = None,
    once: Once = False,
    name: Name = None,
    root: Root = DEFAULT_ROOT,
    n: Count = 100,
    best_before: Days = 30,
    keep: Keep = RUNS_MAX,
    as_json: Json = False,
    webhook: Hook = None,
    webhook_env: HookEnv = None,
    webhook_key_env: HookKey = None,
    metrics_file: Metrics = None,
    changes: Changes = None,
    remote: Remote = False,
    kind: Kind = None,
    model: Model = "",
    rate: Rate = None,
    timeout: Timeout = 60.0,
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
    ca: Ca = None,
) -> None:
    """Measure on a schedule, keep each run and a history, and tell when the answer has expired.

    An answer expires when the leading part moved (by the rule of `tailrace compare`), when a time or a share
    went to another level, or when it is past its best-before date. What was just measured is the new answer.

    Exit codes of --once: 0 the answer holds, 1 it expired, 2 nothing could be measured.

    Examples:
      tailrace watch http://127.0.0.1:8000/api/limited/predict --every 15m
      tailrace watch http://127.0.0.1:8000/api/limited/predict --once --json
      tailrace watch embed --set load.length=20s --every 1h --metrics-file watch.prom

    """
    try:
        need_ruptures()
        hook = _webhook(webhook, webhook_env, webhook_key_env)
        if "://" in target:
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
            )
            subject = target_subject(wanted, Plan(n, 1, rate, timeout), ca, best_before)
        else:
            subject = scenario_subject(target, changes or [], remote=remote)
        seconds, folder = _seconds(every), root / (name or subject.name)
        teller = _Teller(as_json, hook, None if metrics_file is None else Gauges(metrics_file))
        with History(folder, subject.question) as history:
            job = Watch(
                folder.name,
                history,
                subject.measuring,
                teller.tell,
                every_s=seconds,
                runs_max=keep,
            )
            stopped = _carry_out(job, 1 if once else times)
    except (BadAddress, BadHeader, BadHistory, BadRun, BadScenario) as bad:
        fail(str(bad))
    except (CannotAsk, CannotChoose, NoRuptures) as bad:
        fail(str(bad))
    except OSError as error:
        fail(f"{error.filename or root}: {error.strerror or error}")
    if once and stopped:
        raise typer.Exit(INTERRUPTED)
    if once and teller.expired:
        raise typer.Exit(EXPIRED)
    if once and teller.down:
        raise typer.Exit(2)


def _carry_out(job: Watch, times: int | None) -> bool:
    """Whether somebody stopped it, by Ctrl-C or by a polite signal; what was measured is kept."""

    async def main() -> bool:
        task = asyncio.ensure_future(job.run(times))
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, task.cancel)
        with suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _seconds(every: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h|d)", every.strip())
    if found is None or float(found[1]) == 0:
        raise CannotAsk(f"--every takes a time with its unit, as in 30s, 15m or 24h; not {every!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


def _webhook(url: str | None, url_env: str | None, key_env: str | None) -> Webhook | None:
    if url_env is not None:
        url = _environ(url_env)
    key = _environ(key_env) if key_env is not None else None
    if url is None:
        return None
    try:
        address(url)
    except BadAddress:
        raise CannotAsk("the webhook's address is none that can be asked over HTTP") from None
    return Webhook(url, key)


def _environ(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise CannotAsk(f"the environment has no {name}; export it first")
    return value


def _lines(event: Event) -> list[str]:
    point = event.point
    head = f"[dim]{event.to_json()['time']}[/]"
    if point.case:
        head += f" {escape(point.case)}"
    if point.gap is not None:
        lines = [f"{head} [red]down[/]  nothing measured: {escape(point.gap)}"]
    else:
        total, leader = point.total, point.leader
        leads = f"[bold]{leader}[/] leads with {point.parts[leader].share:.0%}" if leader else ""
        p50, p95 = (ms(total.p50), ms(total.p95)) if total else ("-", "-")
        lines = [f"{head} {point.n} rows  p50 {p50} ms  p95 {p95} ms  {leads}"]
    return lines + [f"{head} [bold yellow]expired[/]  {escape(one.text)}" for one in point.expired]
