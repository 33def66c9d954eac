"""Levers: what could be changed about a measured setup, one thing each, as typed words.

`net=12ms`, `dedicated`, `speed=2x`. Knows how levers are spelled and which exclude each other; what they
do to a run is in plan.py and predict.py.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

DOORS = ("limited", "batched", "queue")
"""The doors over a lane; the naive one has none, so there is nothing to replay."""
FACTOR_MAX = 1000.0
COUNT_MAX = 10_000


class BadLever(ValueError):
    """Words that are no lever, or levers that contradict each other: what is wrong, in one line."""


@dataclass(frozen=True, slots=True)
class Cap:
    """How long an answer may become: so many tokens, or this share of what it was."""

    tokens: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Levers:
    """What is changed; None and False leave it as it was measured."""

    net_ms: float | None = None
    """The path's round trip."""
    dedicated: bool = False
    """Nobody else's requests in the line."""
    speed: float | None = None
    """How many times faster the model is."""
    servers: int | None = None
    """Runs at once."""
    door: str | None = None
    seats: int | None = None
    queue_timeout_s: float | None = None
    window_s: float | None = None
    batch: int | None = None
    """The most pieces of work in one run."""
    reasoning_off: bool = False
    output_cap: Cap | None = None
    cache: float | None = None
    """The share of requests whose answer is known."""
    timeout_s: float | None = None
    """How long the caller waits, from the intended start."""
    retries: int | None = None
    """How often a caller that was refused or gave up asks again."""
    rate: float | None = None
    """How many times more requests come."""

    def __bool__(self) -> bool:
        return self != Levers()

    def words(self) -> tuple[str, ...]:
        """The levers as they are spelled on the command line."""
        said = []
        for name, lever in KNOWN.items():
            value = getattr(self, lever.field)
            if value is not None and value is not False:
                said.append(name if lever.bare else f"{name}={lever.spell(value)}")
        return tuple(said)

    def singly(self) -> list["Levers"]:
        """Each lever alone; those that only shape another stay with it."""
        alone = []
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and value is not False:
                alone.append(replace(Levers(), **{item.name: value}))
        return alone


@dataclass(frozen=True, slots=True)
class _Lever:
    field: str
    example: str
    read: Callable[[str], Any]
    spell: Callable[[Any], str]
    bare: bool = False


_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(\D*)")


def _parts(text: str) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return float(found[1]), found[2]


def seconds(text: str) -> float:
    """Read "1500ms" or "1.5s"; raises ValueError or KeyError."""
    number, unit = _parts(text)
    return number * {"ms": 0.001, "s": 1.0}[unit]


def _positive_seconds(text: str) -> float:
    found = seconds(text)
    if found <= 0:
        raise ValueError(text)
    return found


def _factor(text: str) -> float:
    number, unit = _parts(text)
    if unit != "x" or not 0 < number <= FACTOR_MAX:
        raise ValueError(text)
    return number


def _count(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= COUNT_MAX:
            raise ValueError(text)
        return number

    return read


def _share(text: str) -> float:
    number, unit = _parts(text)
    if unit != "%" or number > 100:
        raise ValueError(text)
    return number / 100


def _cap(text: str) -> Cap:
    if not text.endswith("%"):
        return Cap(tokens=_count(1)(text))
    share = _share(text)
    if share <= 0:
        raise ValueError(text)
    return Cap(share=share)


def _door(text: str) -> str:
    if text not in DOORS:
        raise ValueError(text)
    return text


def _off(text: str) -> bool:
    if text != "off":
        raise ValueError(text)
    return True


def _bare(text: str) -> bool:
    raise ValueError(text)


def _in_ms(value_s: float) -> str:
    return f"{value_s * 1000:g}ms"


def _in_percent(share: float) -> str:
    return f"{share * 100:g}%"


KNOWN: dict[str, _Lever] = {
    "net": _Lever("net_ms", "12ms", lambda text: seconds(text) * 1000, lambda ms: f"{ms:g}ms"),
    "dedicated": _Lever("dedicated", "", _bare, str, bare=True),
    "speed": _Lever("speed", "2x", _factor, lambda x: f"{x:g}x"),
    "servers": _Lever("servers", "2", _count(1), str),
    "door": _Lever("door", "|".join(DOORS), _door, str),
    "seats": _Lever("seats", "4", _count(0), str),
    "queue-timeout": _Lever("queue_timeout_s", "15s", _positive_seconds, lambda s: f"{s:g}s"),
    "window": _Lever("window_s", "25ms", seconds, _in_ms),
    "batch": _Lever("batch", "8", _count(1), str),
    "reasoning": _Lever("reasoning_off", "off", _off, lambda _: "off"),
    "output-cap": _Lever(
        "output_cap",
        "50% or 200",
        _cap,
        lambda cap: str(cap.tokens) if cap.share is None else _in_percent(cap.share),
    ),
    "cache": _Lever("cache", "30%", _share, _in_percent),
    "timeout": _Lever("timeout_s", "1500ms", _positive_seconds, _in_ms),
    "retries": _Lever("retries", "2", _count(0), str),
    "rate": _Lever("rate", "2x", _factor, lambda x: f"{x:g}x"),
}


def listed() -> str:
    """The known levers with an example each, for help and for mistakes."""
    return ", ".join(
        name if lever.bare else f"{name}={lever.example}" for name, lever in KNOWN.items()
    )


def parse(words: Sequence[str]) -> Levers:
    """Levers from `name=value` words; raises BadLever, whose line lists the known ones."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        lever = KNOWN.get(name)
        if lever is None:
            raise BadLever(f"there is no lever {name!r}; known: {listed()}")
        if lever.field in found:
            raise BadLever(f"the lever {name} is set twice; known: {listed()}")
        if lever.bare and not equals:
            found[lever.field] = True
            continue
        try:
            found[lever.field] = lever.read(text)
        except (ValueError, KeyError):
            form = name if lever.bare else f"{name}={lever.example}"
            raise BadLever(
                f"{word!r} is no lever; it is spelled {form}; known: {listed()}"
            ) from None
    levers = Levers(**found)
    _check(levers)
    return levers


def _check(levers: Levers) -> None:
    """What one lever alone cannot tell: that two of them exclude each other."""
    alone = levers.door in {"limited", "queue"}
    if alone and (levers.window_s is not None or levers.batch is not None):
        raise BadLever(
            f"door={levers.door} runs work alone, window and batch need door=batched; known: {listed()}"
        )
    if levers.door == "queue" and levers.servers not in {None, 1}:
        raise BadLever(
            f"door=queue brings tickets to the model one by one, servers={levers.servers} "
            f"cannot help it; known: {listed()}"
        )
    if levers.batch == 1 and levers.window_s:
        raise BadLever(f"batch=1 leaves nobody to wait for in a window; known: {listed()}")
