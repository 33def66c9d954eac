"""One request to a target becomes one row: sent, read, divided into parts.

Failed requests become rows too, with the parts they reached. What probe and bench stand on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.floor import edge, floor
from tailrace.latency.partition import NS, Knowledge, partition
from tailrace.latency.pool import TIMEOUT_S, Pool
from tailrace.latency.targets.port import Ask, Reading, Target
from tailrace.wire.record import Outcome, Row

REFUSALS = {429, 503}
"""Statuses by which a server turns a caller away."""
SAID_CHARS_MAX = 200
"""How much of a server's own words a row repeats."""
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
    exchange = await pool.request(
        ask.method,
        ask.url,
        ask.headers,
        ask.body,
        intended_ns=when.intended_ns,
        timeout_s=timeout_s,
        fresh=fresh,
    )
    return row(exchange, ask, target, when)


def row(exchange: Exchange, ask: Ask, target: Target, when: Moment) -> Row:
    """The row of a finished exchange."""
    good = exchange.complete and exchange.status is not None and exchange.status < 400
    reading = target.read(exchange) if good else Reading()
    if exchange.complete:
        exchange.stamps.parsed = now_ns()
    known = Knowledge(marks=reading.marks, floor=floor(exchange), inside=reading.inside)
    divided = partition(exchange.stamps, known)
    detail = {**ask.detail, **_facts(exchange), **reading.detail, **_wrong(exchange, reading, ask)}
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


def _facts(exchange: Exchange) -> Mapping[str, Any]:
    """What the connection and the head of the answer say."""
    facts: dict[str, Any] = {}
    connection = exchange.connection
    if connection is not None:
        facts |= {"reused": connection.reused, "peer": connection.peer}
        if connection.tls_version is not None:
            facts["tls_version"] = connection.tls_version
        if connection.min_rtt_ns is not None:
            facts["min_rtt_ms"] = connection.min_rtt_ns * NS
    if exchange.retried:
        facts["retried"] = True
    if (header := edge(exchange.headers)) is not None:
        facts["edge"] = header
    return facts


def _wrong(exchange: Exchange, reading: Reading, ask: Ask) -> Mapping[str, Any]:
    """What went wrong, in the words of whoever noticed; a key that they repeat is taken out."""
    if exchange.failure is not None:
        return {"error": exchange.failure.message, "failure": exchange.failure.kind}
    if exchange.status is not None and exchange.status >= 400:
        said = exchange.body[: SAID_CHARS_MAX * 4].decode("utf-8", "replace")
        for secret in _secrets(ask):
            said = said.replace(secret, "[key]")
        return {"error": " ".join(said.split())[:SAID_CHARS_MAX]}
    return {} if reading.problem is None else {"error": reading.problem}


def _secrets(ask: Ask) -> list[str]:
    values = [value for name, value in ask.headers.items() if name.lower() in KEY_HEADERS]
    return [word for value in values for word in value.split() if word.lower() != "bearer"]
