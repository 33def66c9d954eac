"""When requests are meant to start: seconds from the start of a block, known before the first is sent.

The same seed gives the same moments, so that two targets, or two dates, are asked in the same rhythm.
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from tailrace.bench.errors import BadScenario
from tailrace.bench.scenario import REQUESTS_MAX, SECONDS_MAX, LoadTable
from tailrace.wire.record import BadRow, Row


class Arrival(NamedTuple):
    """One intended start, and the step of a staircase it belongs to."""

    at_s: float
    step: float | None = None


def arrivals(load: LoadTable, block: int = 0) -> list[Arrival]:
    """The intended starts of one block of an open loop; raises BadScenario."""
    found = list(islice(_within(load, _endless(load, block)), REQUESTS_MAX + 1))
    if len(found) > REQUESTS_MAX:
        raise BadScenario(f"this load has more than {REQUESTS_MAX:,} requests in a block")
    if not found:
        raise BadScenario("this load has no request: make it longer, or its rate higher")
    return found


def _within(load: LoadTable, moments: Iterator[Arrival]) -> Iterator[Arrival]:
    if load.length.unit == "req":
        yield from islice(moments, int(load.length.value))
        return
    for moment in moments:
        if moment.at_s >= load.length.value:
            return
        yield moment


def _endless(load: LoadTable, block: int) -> Iterator[Arrival]:
    chance = random.Random(f"{load.seed} {block}")
    if load.kind == "poisson":
        return _poisson(load.rate, chance)
    if load.kind == "constant":
        return (Arrival(i / load.rate) for i in range(REQUESTS_MAX + 1))
    if load.kind == "staircase":
        return _staircase(load, chance)
    if load.kind == "burst":
        every, size = load.every.value, load.size
        return (Arrival((i // size) * every) for i in range(REQUESTS_MAX + 1))
    if load.kind == "replay":
        return iter(_replay(load))
    raise BadScenario(f"{load.kind} is no open loop")


def _poisson(rate: float, chance: random.Random) -> Iterator[Arrival]:
    at = 0.0
    while True:
        at += chance.expovariate(rate)
        yield Arrival(at)


def _staircase(load: LoadTable, chance: random.Random) -> Iterator[Arrival]:
    width = load.length.value / len(load.rates)
    for number, rate in enumerate(load.rates):
        for moment in _poisson(rate, chance):
            if moment.at_s >= width:
                break
            yield Arrival(number * width + moment.at_s, rate)


def _replay(load: LoadTable) -> list[Arrival]:
    """The moments of a trace from its first one on; the rows of a run, or plain seconds."""
    assert load.trace is not None
    try:
        lines = load.trace.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadScenario(f"the trace {load.trace} cannot be read: {error}") from None
    moments = [_moment(line, number, load) for number, line in enumerate(lines, 1) if line.strip()]
    if not moments:
        raise BadScenario(f"the trace {load.trace} is empty")
    moments.sort()
    if (moments[-1] - moments[0]) / load.speed > SECONDS_MAX:
        raise BadScenario(f"the trace is longer than {SECONDS_MAX:g} s; raise load.speed")
    return [Arrival((moment - moments[0]) / load.speed) for moment in moments]


def _moment(line: str, number: int, load: LoadTable) -> float:
    try:
        if line.lstrip().startswith("{"):
            return Row.from_line(line).at_s
        return float(line)
    except (BadRow, ValueError) as error:
        raise BadScenario(f"line {number} of the trace {load.trace}: {error}") from None
