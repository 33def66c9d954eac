"""Reading what servers say of their own time: the table in `declares` applied to an answer.

Figures of the finest family become parts; what other families say is kept for people. Knows no target.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.latency.declares import FAMILIES, UNTOLD_SERVER, Family, Field
from tailrace.latency.partition import NS, Figure
from tailrace.wire.headers import SERVER_TIMING, parse_server_timing


@dataclass(frozen=True, slots=True)
class Declared:
    """What the server says of one request."""

    family: str | None = None
    """Whose figures became parts."""
    inside: Mapping[str, Figure] = field(default_factory=dict)
    resolution_ns: int = 0
    doubt: str | None = None
    said_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Everything said, by family and field, in milliseconds."""


def read_declared(
    headers: Mapping[str, str],
    answer: Any = None,
    *,
    inputs: int = 1,
    streamed: bool = False,
) -> Declared:
    """What the headers (names in lower case) and the JSON of an answer say.

    `inputs` is how many texts the request held; `streamed` says that the wait ends at the first token, so
    that only what happens before it can be inside.
    """
    timing = parse_server_timing(headers.get(SERVER_TIMING.lower(), ""))
    places = {"header": headers, "server-timing": timing, "body": answer}
    chosen, said, heard = Declared(), {}, set()
    for family in FAMILIES:
        found = dict(_found(family, places[family.place]))
        if not family.signs & {f.name for f in found}:
            continue
        said[family.name] = {f.name: round(ns * NS, 6) for f, ns in found.items()}
        # Of one place the first family that is recognised speaks: the later ones are more general.
        if chosen.family is None or (not chosen.inside and family.place not in heard):
            chosen = _declared(family, found, inputs, streamed)
        heard.add(family.place)
    return Declared(chosen.family, chosen.inside, chosen.resolution_ns, chosen.doubt, said)


def _found(family: Family, place: Any) -> Iterator[tuple[Field, int]]:
    """The fields of a family that an answer holds, in nanoseconds; what is no number is not there."""
    if not isinstance(place, Mapping):
        return
    for one in family.fields:
        value = _at(place, one.name) if family.place == "body" else place.get(one.name)
        number = _number(value)
        if number is not None:
            yield one, round(number * one.unit)


def _at(body: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(body, Mapping):
            return None
        body = body.get(name)
    return body


def _number(value: Any) -> float | None:
    """A duration; headers hold it as text, some with its unit behind it."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        value = value.strip().removesuffix("ms").removesuffix("s")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < 1e15 else None  # not NaN, not infinite, not below nothing


def _declared(family: Family, found: Mapping[Field, int], inputs: int, streamed: bool) -> Declared:
    averaged = inputs > 1 and any(f.averaged for f in found)
    figures = {
        name: Figure(ns, "declared", note="averaged over inputs" if averaged else None)
        for name, ns in _parts(found).items()
    }
    if not figures.keys() - {"net"} and (whole := _whole(found, streamed)) is not None:
        figures[whole[0]] = Figure(whole[1], "declared", note=UNTOLD_SERVER)
    if streamed and "infer" in figures:
        figures["prefill"] = figures.pop("infer")
    used = [f for f in found if f.part is not None or f.alone is not None]
    return Declared(
        family=family.name,
        inside=figures,
        resolution_ns=sum(f.resolution_ns for f in used),
        doubt="the parts are averages over the inputs" if averaged else family.doubt,
    )


def _parts(found: Mapping[Field, int]) -> dict[str, int]:
    parts: dict[str, int] = {}
    for one, ns in found.items():
        if one.part is not None:
            parts[one.part] = parts.get(one.part, 0) + ns
    rest = _derived_rest(found)
    if rest is not None:
        parts["queue"] = parts.get("queue", 0) + rest
    return parts


def _whole(found: Mapping[Field, int], streamed: bool) -> tuple[str, int] | None:
    """The figure that stands for the whole where nothing finer is told; of a stream, for its start."""
    alone = {f.alone: ns for f, ns in found.items() if f.alone is not None}
    for name in ("prefill", "infer") if streamed else ("infer", "prefill"):
        if name in alone:
            return name, alone[name]
    return None


def _derived_rest(found: Mapping[Field, int]) -> int | None:
    """What a total that holds everything leaves for the queue, where no field names the queue."""
    total = next((ns for f, ns in found.items() if f.holds_queue), None)
    if total is None:
        return None
    inner = sum(ns for f, ns in found.items() if f.part is not None and not f.holds_queue)
    return max(0, total - inner) if inner else None
