"""Has the bottleneck moved: the verdict "moved from X to Y", and the honest answers beside it.

The rule is narrow, so that noise does not start a rebuild: X leads before and Y leads after, each in 95 %
of the resamples; the 99 % interval of the change of (share of Y - share of X) excludes nought with Holm's
correction over all parts in contention; and the change is at least 5 points and twice the spread that the
probe shows without any change. Knows shares, not what caused them (why.py) nor whether the two runs may be
compared at all (alike.py).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailrace.latency.bootstrap import RESAMPLES, holm, p_value, percentile_interval
from tailrace.latency.interval import Change
from tailrace.latency.sample import Floats, Sample, sample
from tailrace.latency.standing import POINTS_MIN, Standing, standing
from tailrace.wire.record import Row

LEVEL = 0.99
"""Confidence of the interval of the change."""
SPREADS_MIN = 2.0
"""How many times the spread without a change the change must be."""
ROWS_MIN = 10
"""With fewer rows a bootstrap knows too little of the distribution to say anything."""
CONTENDS = 0.01
"""A part that leads in fewer resamples than this, before and after, is not in contention."""
Kind = Literal["moved", "stayed", "tie", "no evidence", "not decidable"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two runs say about where the bottleneck is."""

    kind: Kind
    of: str
    """What was divided: "the mean", or "the slowest 5 %"."""
    text: str
    """One sentence for people."""
    before: str
    after: str
    """The parts that lead; in the most resamples, where none leads firmly."""
    lead_before: float
    lead_after: float
    change: Change | None = None
    """Of (share of `after` - share of `before`), 0..1, at LEVEL; None where the leader is the same."""
    p: float | None = None
    """Holm's p-value of that change."""
    spread: float | None = None
    """Standard error of that change from differences between stretches of time; None where unknown."""
    rows_needed: int | None = None
    """About how many rows each run would need for a decision, where that is what is missing."""

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        return {
            "kind": self.kind,
            "of": self.of,
            "text": self.text,
            "before": self.before,
            "after": self.after,
            "lead_before": self.lead_before,
            "lead_after": self.lead_after,
            "change": None if self.change is None else self.change.to_json(),
            "p": self.p,
            "spread": self.spread,
            "rows_needed": self.rows_needed,
        }


def moved(
    before: Sequence[Row],
    after: Sequence[Row],
    *,
    tail_q: float | None = None,
    aa_spread: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Verdict:
    """The verdict on two runs, of the mean or of the tail beyond `tail_q`; raises BadSample.

    `aa_spread` is what the shares differed by, 0..1, when the same thing was measured twice; without it
    the spread is taken from how much stretches of time within the runs differ.
    """
    return moved_of(
        sample(before, "the first run"),
        sample(after, "the second run"),
        tail_q=tail_q,
        aa_spread=aa_spread,
        resamples=resamples,
        seed=seed,
    )


def moved_of(
    before: Sample,
    after: Sample,
    *,
    tail_q: float | None = None,
    aa_spread: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Verdict:
    """The same of samples that are already made."""
    names = before.names + tuple(name for name in after.names if name not in before.names)
    first = standing(before, names, tail_q, resamples, seed)
    second = standing(after, names, tail_q, resamples, seed + 1)
    of = "the mean" if tail_q is None else f"the slowest {(1 - tail_q) * 100:g} %"
    return _Case(names, of, first, second, aa_spread).verdict()


@dataclass(frozen=True, slots=True)
class _Case:
    names: Sequence[str]
    of: str
    before: Standing
    after: Standing
    aa_spread: float | None

    def verdict(self) -> Verdict:
        sides = (self.before, self.after)
        if (n := min(side.sample.n for side in sides)) < ROWS_MIN:
            return self._say(
                "not decidable",
                f"{n} rows are too few to say which part leads",
                rows_needed=ROWS_MIN,
            )
        if hidden := next((side for side in sides if side.cut_off_decides()), None):
            share = hidden.sample.censored_share
            return self._say(
                "not decidable",
                f"{share:.0%} of the requests were cut off, and without them another part leads",
            )
        if not (self.before.firm and self.after.firm):
            return self._undecided()
        if self.before.leader == self.after.leader:
            name = self.names[self.after.leader]
            return self._say("stayed", f"{name} leads {self.of} before and after")
        return self._tested()

    def _undecided(self) -> Verdict:
        """Where no part leads firmly: equal parts are a tie, anything else needs more rows."""
        ties: list[str] = []
        needed = 0
        for side, when in ((self.before, "before"), (self.after, "after")):
            if side.firm:
                continue
            x, y = side.leader, side.second()
            gaps = side.resampled[:, x] - side.resampled[:, y]
            gap = percentile_interval(gaps)
            pair = f"{self.names[x]} and {self.names[y]}"
            if gap.low >= -POINTS_MIN and gap.high <= POINTS_MIN:
                ties.append(f"{pair} are within {POINTS_MIN * 100:.0f} points {when}")
            else:
                needed = max(needed, side.rows_needed(gaps))
                ties.append(f"{pair} are within the noise of {side.sample.n} rows {when}")
        told = "; ".join(ties)
        if self.before.firm and self.after.lead[self.before.leader] < CONTENDS:
            told = f"{self.names[self.before.leader]} led before and no longer does; {told}"
        if needed:
            text = f"{told}: about {needed} rows would tell"
            return self._say("not decidable", text, rows_needed=needed)
        return self._say("tie", f"tie: {told}")

    def _tested(self) -> Verdict:
        x, y = self.before.leader, self.after.leader
        changes = {pair: self._changes(*pair) for pair in self._pairs()}
        corrected = dict(
            zip(changes, holm([p_value(change) for change in changes.values()]), strict=True)
        )
        key = (min(x, y), max(x, y))
        p = corrected[key]
        resampled = changes[key] if key == (x, y) else -changes[key]
        value = self._gap(self.after.shares, x, y) - self._gap(self.before.shares, x, y)
        change = Change(float(value), percentile_interval(resampled, LEVEL))
        spread = self.aa_spread if self.aa_spread is not None else self._spread(x, y)
        found = _Evidence(change, p, spread)
        missing = [
            why
            for short, why in (
                (not change.sure or p > 1 - LEVEL, "it may be chance"),
                (value < POINTS_MIN, f"it is less than {POINTS_MIN * 100:.0f} points"),
                (
                    spread is not None and value < SPREADS_MIN * spread,
                    "the same thing measured twice differs as much",
                ),
            )
            if short
        ]
        names = f"{self.names[x]} to {self.names[y]}"
        points = f"{value * 100:+.0f} points"
        if missing:
            text = f"no evidence of a move from {names}: {points}, but {missing[0]}"
            return self._say("no evidence", text, found)
        low, high = (end * 100 for end in (change.interval.low, change.interval.high))
        text = f"moved from {names}: {points} [{low:+.0f}, {high:+.0f}] of {self.of}"
        return self._say("moved", text, found)

    def _pairs(self) -> list[tuple[int, int]]:
        """Every pair of parts of which either might lead at either time."""
        contends = (self.before.lead >= CONTENDS) | (self.after.lead >= CONTENDS)
        return list(itertools.combinations(map(int, np.flatnonzero(contends)), 2))

    def _changes(self, x: int, y: int) -> Floats:
        return self._gap(self.after.resampled, x, y) - self._gap(self.before.resampled, x, y)

    @staticmethod
    def _gap(shares: Floats, x: int, y: int) -> Floats:
        return np.asarray(shares[..., y] - shares[..., x], dtype=np.float64)

    def _spread(self, x: int, y: int) -> float | None:
        """What the change would be by the differences between stretches of time alone."""
        variances = [side.between_stretches(x, y) for side in (self.before, self.after)]
        known = [variance for variance in variances if variance is not None]
        return math.sqrt(sum(known)) if len(known) == len(variances) else None

    def _say(
        self,
        kind: Kind,
        text: str,
        evidence: "_Evidence | None" = None,
        rows_needed: int | None = None,
    ) -> Verdict:
        x, y = self.before.leader, self.after.leader
        found = evidence or _Evidence()
        return Verdict(
            kind=kind,
            of=self.of,
            text=text,
            before=self.names[x],
            after=self.names[y],
            lead_before=float(self.before.lead[x]),
            lead_after=float(self.after.lead[y]),
            change=found.change,
            p=found.p,
            spread=found.spread,
            rows_needed=rows_needed,
        )


@dataclass(frozen=True, slots=True)
class _Evidence:
    change: Change | None = None
    p: float | None = None
    spread: float | None = None
