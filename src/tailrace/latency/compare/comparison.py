"""Everything that two runs say together, from rows to one word: better, same or worse."""

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.latency.bootstrap import RESAMPLES
from tailrace.latency.compare.alike import Difference, differences, folded
from tailrace.latency.compare.measured import Measured
from tailrace.latency.compare.pairs import pairing
from tailrace.latency.compare.totals import TotalChange, Turn, total_changes
from tailrace.latency.compare.why import PartChange, part_changes, why
from tailrace.latency.moved import Verdict, moved_of
from tailrace.latency.quantiles import Summary
from tailrace.latency.sample import BadSample, Sample, sample
from tailrace.latency.shares import of_whole
from tailrace.latency.tails import TailBudget, deepest_tail, tail_of
from tailrace.wire.record import Row

SCHEMA = 1
"""Grows when a reader of the older JSON would misread the newer."""
AA_BLOCK = -1
"""The block in which a session asks its first case once more before it begins: the first half of an A/A."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    before: str
    after: str
    summaries: tuple[Summary, Summary]
    differences: tuple[Difference, ...]
    """In what the runs are not alike, apart from their figures."""
    notes: tuple[str, ...]
    paired: int
    """How many pairs of equal prompts the changes are over; 0 where the runs were not paired."""
    totals: tuple[TotalChange, ...]
    parts: tuple[PartChange, ...]
    tails: tuple[TailBudget, TailBudget] | None
    verdict: Verdict
    tail_verdict: Verdict | None
    why: str

    @property
    def turn(self) -> Turn:
        """Worse if any figure of the total is, else better if any is."""
        turns = {total.turn for total in self.totals}
        if "worse" in turns:
            return "worse"
        return "better" if "better" in turns else "same"

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        return {
            "schema": SCHEMA,
            "before": {"name": self.before, **self.summaries[0].to_json()},
            "after": {"name": self.after, **self.summaries[1].to_json()},
            "turn": self.turn,
            "verdict": self.verdict.to_json(),
            "tail_verdict": None if self.tail_verdict is None else self.tail_verdict.to_json(),
            "why": self.why,
            "totals": {total.name: total.to_json() for total in self.totals},
            "parts": {part.name: part.to_json() for part in self.parts},
            "tails": None if self.tails is None else [tail.to_json() for tail in self.tails],
            "paired": self.paired,
            "differences": [difference.to_json() for difference in self.differences],
            "notes": list(self.notes),
        }


def compare(
    before: Measured,
    after: Measured,
    again: Measured | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two runs; `again` is a second measurement of what `before` measured: the noise.

    Raises BadSample where a run has no figures, Incomparable where they have nothing to do with each
    other.
    """
    first, second = (sample(run.rows, run.name) for run in (before, after))
    unlike = differences(before, after, first, second)
    one, other, fold = folded(first, second)
    notes = (
        [f"{', '.join(fold)} is told apart in one run only: counted as other in both"]
        if fold
        else []
    )
    repeats = [*_repeats(before, notes), *_repeats(after, notes)]
    if again is not None:
        repeats.append((first, sample(again.rows, again.name)))
    if not repeats:
        notes.append(
            "no A/A was measured: what the machine differs by between two runs is not known"
        )
    pairs = pairing(one, other, resamples=resamples, seed=seed)
    q = deepest_tail(min(one.n, other.n))
    verdicts = [
        moved_of(
            one,
            other,
            tail_q=tail_q,
            aa_spread=_share_spread(repeats) if tail_q is None else None,
            resamples=resamples,
            seed=seed,
        )
        for tail_q in ([None] if q is None else [None, q])
    ]
    parts = part_changes(pairs)
    return Comparison(
        before=before.name,
        after=after.name,
        summaries=(_summary(first, seed), _summary(second, seed)),
        differences=tuple(unlike),
        notes=tuple(notes),
        paired=pairs.before.n if pairs.paired else 0,
        totals=total_changes(pairs, repeats),
        parts=parts,
        tails=None if q is None else (tail_of(one, q), tail_of(other, q)),
        verdict=verdicts[0],
        tail_verdict=verdicts[1] if q is not None else None,
        why=why(parts, verdicts[0].after),
    )


def _summary(run: Sample, seed: int) -> Summary:
    return Summary.of(run.wall, run.censored, seed)


def _repeats(run: Measured, notes: list[str]) -> list[tuple[Sample, Sample]]:
    """The two goes of an A/A within a run, where it has one."""
    goes = [_block(run.rows, number) for number in (AA_BLOCK, 0)]
    if not all(goes):
        return []
    try:
        return [(sample(goes[0]), sample(goes[1]))]
    except BadSample as bad:
        notes.append(f"the A/A of {run.name} tells nothing: {bad}")
        return []


def _block(rows: Sequence[Row], number: int) -> list[Row]:
    return [row for row in rows if row.detail.get("block") == number]


def _share_spread(repeats: list[tuple[Sample, Sample]]) -> float | None:
    """The largest change of any difference between two shares, in what was measured twice."""
    found = []
    for one, other in repeats:
        names = tuple(dict.fromkeys((*one.names, *other.names)))
        moves = of_whole(other.on(names).mean(axis=0)) - of_whole(one.on(names).mean(axis=0))
        found.append(float(moves.max() - moves.min()))
    return max(found, default=None)
