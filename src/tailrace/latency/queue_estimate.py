"""The queue of a server that does not tell it: what a request waited longer than those that came alone.

A request that none of our own was before, found an empty server; its wait is the way and the service. In an
open loop such requests lie among the others, measured in the same minutes on the same machine, so that what
drifts hits both. What comes on top of a service of that size is the load's excess: the queue, and whatever
the service itself is slowed down by company. A queue that others make is in both, and is not seen.

Source: research on measuring, f2; arrivals see time averages (Wolff 1982), so at use u a share 1 - u of
Poisson arrivals finds one server empty. Knows rows only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tailrace.latency.interval import Interval
from tailrace.latency.sample import Floats
from tailrace.wire.record import CLIENT_PARTS, Part, Row

ALONE_MIN = 40
"""Fewer requests that came alone say too little of the service."""
COMPANY_MIN = 40
"""Fewer requests that came into company say nothing of a queue."""
SPREAD = (0.05, 0.95)
"""The quantiles of what a service scatters by, of which a row's interval is made."""
NEAR = 16
"""So many of the alone requests next in time say how fast the server is just now: a machine has slow spells,
and they are what makes the queue."""
Z95 = 1.96
SERVICES = ("tokenize", "prefill", "infer")
QUEUE_NOTE = "beyond what a request that came alone waits"
SERVICE_NOTE = "as long as those that came alone, by size"


@dataclass(frozen=True, slots=True)
class Undecided:
    """No queue is estimated: why, in one sentence; None where there is nothing to estimate."""

    why: str | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """All rows, those without a declared queue with an estimated one, and how sure it is together."""

    rows: tuple[Row, ...]
    alone: int
    """How many requests the service is known from."""
    mean_ms: float
    mean: Interval
    """Of the mean queue of these very requests, 95 %: services may by chance differ from the alone ones'."""

    def __str__(self) -> str:
        low, high = self.mean.low, self.mean.high
        return (
            f"the queue is estimated from {self.alone} requests that came alone: mean "
            f"{self.mean_ms:,.1f} ms [{low:,.1f}, {high:,.1f}]; being slowed down by company is in it, "
            "a queue that others make is not"
        )


def estimate_queue(rows: Sequence[Row]) -> Estimate | Undecided:
    """Put an estimated queue into every row that has none declared; the parts add up as before.

    A row's queue may be below 0 by as much as a service scatters: cut at 0, their mean would be too long.
    """
    wanted = [place for place, row in enumerate(rows) if _open(row)]
    if not wanted:
        return Undecided()
    by_itself = set(_alone(rows))
    alone = [rows[place] for place in wanted if place in by_itself]
    company = len(wanted) - len(alone)
    if company < COMPANY_MIN:
        return Undecided(
            f"the queue cannot be told from inference: {company} requests came while another was inside, "
            f"{COMPANY_MIN} are needed; offer more, in an open loop"
        )
    if len(alone) < ALONE_MIN:
        return Undecided(
            f"the queue cannot be told from inference: {len(alone)} requests came alone, "
            f"{ALONE_MIN} are needed; offer less, or measure for longer"
        )
    service = _Service.of(alone)
    filled = list(rows)
    for place in wanted:
        filled[place] = service.split(rows[place])
    queue = float(np.mean([filled[place].parts["queue"].ms for place in wanted]))
    # Of the rows that were alone the mean is 0, whatever the service is.
    chance = np.sqrt(1 / len(alone) + 1 / company) * company / len(wanted)
    error = Z95 * service.scatter_ms * float(chance)
    return Estimate(tuple(filled), len(alone), queue, Interval(queue - error, queue + error))


def _open(row: Row) -> bool:
    """Whether a queue can and may be put into the row."""
    return (
        row.outcome == "ok"
        and row.phase != "cold"
        and "other" in row.parts
        and "queue" not in row.parts
        and row.detail.get("cache") != "hit"
    )


def _alone(rows: Sequence[Row]) -> Iterator[int]:
    """The places of rows that began when all that had begun before had ended.

    Nobody knows when a server ends what was given up; it is taken to need as long again.
    """
    spans = []
    for place, row in enumerate(rows):
        late = row.parts["sched"].ms if "sched" in row.parts else 0.0
        meant = row.at_s * 1000
        ends = meant + row.wall_ms * (2 if row.censored else 1)
        spans.append((meant + late, ends, place, row.outcome == "refused"))
    busy_until = float("-inf")
    for begins, ends, place, refused in sorted(spans):
        if begins >= busy_until:
            yield place
        if not refused:
            busy_until = max(busy_until, ends)


@dataclass(frozen=True, slots=True)
class _Service:
    """What a request takes that came alone, in milliseconds: a line through its size, and a scatter."""

    size: str | None
    at: float
    mean: float
    slope: float
    moments: Floats
    beside: Floats
    """Of those alone, in time order: when they came, and how far beside the line they took."""
    low: float
    high: float
    scatter_ms: float
    """The standard deviation beside the line."""

    @classmethod
    def of(cls, alone: Sequence[Row]) -> "_Service":
        took = np.array([row.parts["other"].ms for row in alone])
        size = _size_of(alone)
        sizes = _sizes(alone, size)
        at, mean = float(sizes.mean()), float(took.mean())
        spread = sizes - at
        square = float(spread @ spread)
        slope = max(0.0, float(spread @ (took - mean)) / square) if square else 0.0
        moments = np.array([row.at_s for row in alone])
        order = np.argsort(moments, kind="stable")
        beside = (took - mean - slope * spread)[order]
        found = cls(size, at, mean, slope, moments[order], beside, 0.0, 0.0, 0.0)
        left = took - np.array([found.takes(row) for row in alone])
        low, high = np.quantile(left, SPREAD)
        scatter = float(left.std(ddof=2))
        return replace(found, low=float(low), high=float(high), scatter_ms=scatter)

    def takes(self, row: Row) -> float:
        """What the row's request would take alone, at its time."""
        size = self.at if self.size is None else float(row.detail.get(self.size, self.at))
        after = int(np.searchsorted(self.moments, row.at_s))
        first = max(0, min(after - NEAR // 2, len(self.moments) - NEAR))
        now = float(self.beside[first : first + NEAR].mean())
        return max(0.0, self.mean + self.slope * (size - self.at) + now)

    def split(self, row: Row) -> Row:
        rest = row.parts["other"].ms
        takes = self.takes(row)
        queue = rest - takes
        parts = dict(row.parts)
        parts["queue"] = Part(queue, "estimated", queue - self.high, queue - self.low, QUEUE_NOTE)
        if parts.keys() & set(SERVICES):  # the rest holds no service, only what is around it
            parts["other"] = replace(parts["other"], ms=takes)
        else:
            name = "prefill" if "generate" in parts else "infer"
            low, high = takes + self.low, takes + self.high
            parts[name] = Part(takes, "estimated", low, high, SERVICE_NOTE)
            parts["other"] = replace(parts["other"], ms=rest - queue - takes, note=None)
        return replace(row, parts={name: parts[name] for name in CLIENT_PARTS if name in parts})


def _size_of(rows: Sequence[Row]) -> str | None:
    """The figure that tells how much work a request is, where all rows have one."""
    for name in ("input_tokens", "sent_bytes"):
        if all(isinstance(row.detail.get(name), int | float) for row in rows):
            return name
    return None


def _sizes(rows: Sequence[Row], size: str | None) -> Floats:
    return np.array([0.0 if size is None else float(row.detail[size]) for row in rows])
