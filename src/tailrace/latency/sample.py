"""The rows of a run that count, as arrays: what every figure over many rows is computed from.

Decides once which rows are latencies (answered or cut off, steady, in time order) and refuses what would
give a wrong number. Knows nothing of what is computed.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailrace.wire.record import CLIENT_PARTS, IDENTITY_MS, Outcome, Row

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEADY = "steady"
SERVED: frozenset[Outcome] = frozenset({"ok", "timeout", "truncated"})
"""Outcomes that are latencies, if only as a lower bound; a refusal or an error is another thing."""


class BadSample(ValueError):
    """Rows from which no honest figure comes: why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Steady rows in time order; milliseconds."""

    rows: tuple[Row, ...]
    names: tuple[str, ...]
    """Parts that any row has, in the order of reports; a part that a row lacks took no time in it."""
    ms: Floats
    """One line per row, one column per part."""
    wall: Floats
    censored: Bools
    outcomes: Mapping[Outcome, int]
    """All steady rows by outcome, also those that are no latencies."""
    answered: Bools
    """Of all steady rows in time order: whether the whole answer came."""

    @property
    def n(self) -> int:
        """How many rows are latencies."""
        return len(self.rows)

    @property
    def means(self) -> Floats:
        """The mean of each part."""
        return np.asarray(self.ms.mean(axis=0), dtype=np.float64)

    @property
    def censored_share(self) -> float:
        """The share of the latencies that are only lower bounds."""
        return float(self.censored.mean())

    @property
    def answered_share(self) -> float:
        """The share of all steady requests that got their whole answer."""
        return float(self.answered.mean())

    def on(self, names: Sequence[str]) -> Floats:
        """The parts by these names as columns; zeros where the sample has no such part."""
        columns = np.zeros((self.n, len(names)))
        for column, name in enumerate(names):
            if name in self.names:
                columns[:, column] = self.ms[:, self.names.index(name)]
        return columns

    def pick(self, places: Sequence[int]) -> "Sample":
        """Some of the latencies, in the order given; what is said of all steady rows stays."""
        rows = tuple(self.rows[place] for place in places)
        chosen = np.array(places, dtype=np.intp)
        return replace(
            self,
            rows=rows,
            ms=self.ms[chosen],
            wall=self.wall[chosen],
            censored=self.censored[chosen],
        )

    def fold(self, names: Sequence[str], into: str) -> "Sample":
        """The same with some parts added to another one, which is made where it is not there."""
        if not set(names) & set(self.names):
            return self
        kept = [name for name in self.names if name not in names]
        if into not in kept:
            kept.append(into)
        kept = list(_ordered(set(kept)))
        columns = self.on(kept)
        columns[:, kept.index(into)] += self.on(names).sum(axis=1)
        return replace(self, names=tuple(kept), ms=columns)


def sample(rows: Sequence[Row], what: str = "the run") -> Sample:
    """The steady, served rows in time order; raises BadSample, whose sentence begins with `what`."""
    steady = _in_time_order([row for row in rows if row.phase == STEADY])
    if not steady:
        other = " outside its warm-up" if rows else ""
        raise BadSample(f"{what} has no rows{other}: measure again, for longer")
    served = [row for row in steady if row.outcome in SERVED]
    outcomes = Counter(row.outcome for row in steady)
    if not served:
        told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        raise BadSample(f"{what} has no answered request ({told}): there is nothing to measure")
    if all(row.censored for row in served):
        waited = min(row.wall_ms for row in served)
        raise BadSample(
            f"every request of {what} was cut off (>= {waited:.0f} ms): measure with a longer timeout"
        )
    for index, row in enumerate(served):
        _check(row, f"{what}, row {index + 1}")
    names = _ordered({name for row in served for name in row.parts})
    if not names:
        raise BadSample(f"{what} has no parts: only rows that are divided into parts are compared")
    ms = [[row.parts[name].ms if name in row.parts else 0.0 for name in names] for row in served]
    return Sample(
        rows=tuple(served),
        names=names,
        ms=np.array(ms, dtype=np.float64),
        wall=np.array([row.wall_ms for row in served]),
        censored=np.array([row.censored for row in served]),
        outcomes=dict(outcomes),
        answered=np.array([row.outcome == "ok" for row in steady]),
    )


def _in_time_order(rows: Sequence[Row]) -> list[Row]:
    """By the wall clock where every row has it: a run may have been made in several sittings."""
    stamped = [(row.unix_s, row) for row in rows if row.unix_s is not None]
    if len(stamped) < len(rows):
        return sorted(rows, key=lambda row: row.at_s)
    return [row for _, row in sorted(stamped, key=lambda pair: pair[0])]


def _check(row: Row, what: str) -> None:
    if not math.isfinite(row.wall_ms) or row.wall_ms < 0:
        raise BadSample(f"{what}: a wall time of {row.wall_ms} ms cannot be")
    for name, part in row.parts.items():
        if not math.isfinite(part.ms):
            raise BadSample(f"{what}: {name} of {part.ms} ms cannot be")
    if abs(miss := row.miss_ms()) > IDENTITY_MS:
        raise BadSample(f"{what}: its parts miss its wall time by {miss:.3f} ms")


def _ordered(names: set[str]) -> tuple[str, ...]:
    known = [name for name in CLIENT_PARTS if name in names]
    return (*known, *sorted(names.difference(CLIENT_PARTS)))
