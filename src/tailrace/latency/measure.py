"""One request to a target becomes one row: sent, read, divided into parts.

Failed requests become rows too, with the parts they reached. What probe and bench stand on.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

from tailrace.latency.declared import Declared, read_declared
from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.facts import facts
from tailrace.latency.floor import floor
from tailrace.latency.partition import NS, Figure, Knowledge, partition
from tailrace.latency.pool import TIMEOUT_S, Pool
from tailrace.latency.spans import finished
from tailrace.latency.targets.port import Ask, Reading, Target
from tailrace.latency.thinking import split_generate
from tailrace.wire.record import Outcome, Row

REFUSALS = {429, 503}
"""Statuses by which a server turns a caller away."""
SAID_CHARS_MAX = 200
"""How much of a server's own words a row repeats."""
POLL_S = 0.05
"""Between two looks at an answer that is not ready yet."""
KEY_HEADERS = {"authorization", "api-key", "x-api-key", "x-goog-api-key"}
"""Headers that hold a key."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a request was meant to start: by the clock of stamps, since the run began, by the wall clock."""

    intended_ns: int
    at_s: float = 0.0
    unix_s: float | None = None
    phase: str = "steady"


async def measure(
    pool: Pool,
    target: Target,
    index: int,
    moment: Moment | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    fresh: bool = False,
) -> Row:
    """Send request number `index` of `target` and return its row; raises only what `Pool.request` does."""
    ask = target.ask(index)
    when = moment or Moment(now_ns())
    tracing = pool.tracing
    begun = None
    if tracing is not None:
        begun = tracing.begin({})
        ask = replace(ask, headers={**ask.headers, **begun.headers})
    exchange = await pool.request(
        ask.method,
        ask.url,
        ask.headers,
        ask.body,
        intended_ns=when.intended_ns,
        timeout_s=timeout_s,
        fresh=fresh,
    )
    reading = _read(target, exchange)
    polls = 0
    until = exchange.stamps.taken + round(timeout_s * 1e9)
    while reading.again is not None:
        exchange = await _again(pool, ask, exchange, reading.again, until)
        reading = _read(target, exchange)
        polls += 1
    made = row(exchange, reading, ask, when, polls=polls)
    if tracing is not None and begun is not None and begun.sampled:
        made = replace(made, detail={**made.detail, "trace": begun.trace})
        tracing.end(begun, finished(made, ask, when.intended_ns))
    return made


def _read(target: Target, exchange: Exchange) -> Reading:
    good = exchange.status is not None and exchange.status < 400
    if good and not exchange.complete and exchange.chunks:
        # Of what was cut off only the moments count: which part of the answer it was in.
        return Reading(marks=target.read(exchange).marks)
    reading = target.read(exchange) if good and exchange.complete else Reading()
    if exchange.complete:
        exchange.stamps.parsed = now_ns()
    return reading


async def _again(pool: Pool, ask: Ask, first: Exchange, url: str, until: int) -> Exchange:
    """Ask once more for an answer that was not ready; its moments are those of the first request."""
    await asyncio.sleep(POLL_S)
    headers = {name: value for name, value in ask.headers.items() if name != "content-type"}
    left_s = max(0.0, (until - now_ns()) / 1e9)
    later = await pool.request("GET", url, headers, timeout_s=left_s)
    begun, then = first.stamps, later.stamps
    for name in ("intended", "taken", "dns_start", "dns", "tcp", "tls", "connected", "sent"):
        setattr(then, name, getattr(begun, name))
    return later


def row(exchange: Exchange, reading: Reading, ask: Ask, when: Moment, *, polls: int = 0) -> Row:
    """The row of a finished exchange and of what was read of it."""
    declared = read_declared(
        {**exchange.headers, **exchange.trailers},
        reading.answer,
        inputs=ask.detail.get("batch_size", 1),
        streamed=reading.marks.first_token is not None,
    )
    divided = partition(exchange.stamps, _known(exchange, reading, declared))
    detail = {**ask.detail, **facts(exchange), **reading.detail, **_wrong(exchange, reading, ask)}
    if declared.said_ms:
        detail["declared"] = declared.said_ms
    if polls:
        detail["polls"] = polls
    if divided.inconsistent is not None:
        detail["inconsistent"] = divided.inconsistent
    return Row(
        wall_ms=divided.wall_ns * NS,
        parts=divided.parts,
        status=exchange.status,
        outcome=_outcome(exchange, reading),
        at_s=when.at_s,
        unix_s=when.unix_s,
        phase=when.phase,
        prompt=ask.prompt,
        detail=detail,
    )


def _known(exchange: Exchange, reading: Reading, declared: Declared) -> Knowledge:
    inside = {**declared.inside, **reading.inside}
    if reading.thought_share is not None:
        inside = split_generate(inside, reading.thought_share)
    path, beyond = floor(exchange), inside.pop("net", None)
    if beyond is not None:  # a CDN tells the way from its edge to the origin
        before = path.ns if path is not None else 0
        path = Figure(before + beyond.ns, "declared", note="to the edge, and on to the origin")
    return Knowledge(
        marks=reading.marks,
        floor=path,
        inside=inside,
        resolution_ns=declared.resolution_ns + reading.resolution_ns,
        doubt=declared.doubt,
    )


def _outcome(exchange: Exchange, reading: Reading) -> Outcome:
    failure = exchange.failure
    if failure is not None:
        if failure.kind == "timeout":
            return "timeout"
        return "truncated" if failure.kind == "truncated" else "error"
    if exchange.status in REFUSALS:
        return "refused"
    if exchange.status is None or exchange.status >= 400:
        return "error"
    if reading.truncated:
        return "truncated"
    return "ok" if reading.problem is None else "error"


def _wrong(exchange: Exchange, reading: Reading, ask: Ask) -> Mapping[str, Any]:
    """What went wrong, in the words of whoever noticed; a key that they repeat is taken out."""
    if exchange.failure is not None:
        return {"error": exchange.failure.message, "failure": exchange.failure.kind}
    if exchange.status is not None and exchange.status >= 400:
        said = exchange.body[: SAID_CHARS_MAX * 20].decode("utf-8", "replace")
        for secret in _secrets(ask):
            said = said.replace(secret, "[key]")
        return {"error": _plain(said)[:SAID_CHARS_MAX]}
    return {} if reading.problem is None else {"error": reading.problem}


def _plain(said: str) -> str:
    """One line for people: of a page its title, or its words where it has none."""
    if re.match(r"\s*<(!doctype|html|head|body|\?xml|h1|title)", said, re.IGNORECASE):
        title = re.search(r"<(title|h1)[^>]*>(.*?)</", said, re.IGNORECASE | re.DOTALL)
        said = title[2] if title else re.sub(r"<[^>]*>", " ", said)
    return " ".join(unescape(said).split())


def _secrets(ask: Ask) -> list[str]:
    values = [value for name, value in ask.headers.items() if name.lower() in KEY_HEADERS]
    return [word for value in values for word in value.split() if word.lower() != "bearer"]
