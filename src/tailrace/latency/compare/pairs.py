"""Rows of two runs that asked the same thing, side by side: what differs between prompts cancels out."""

from collections import defaultdict
from dataclasses import dataclass

from tailrace.latency.bootstrap import RESAMPLES, Resamples, block_length
from tailrace.latency.sample import Sample

PAIRED_MIN = 0.9
"""Share of either run that must find its counterpart; else the runs are compared as they are."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two samples and how both are drawn; paired ones are of equal length and drawn together."""

    before: Sample
    after: Sample
    first: Resamples
    second: Resamples
    paired: bool


def pairing(before: Sample, after: Sample, *, resamples: int = RESAMPLES, seed: int = 0) -> Pairing:
    """Pair the k-th time that a prompt was asked with the k-th time in the other run."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(after.rows):
        if row.prompt is not None:
            places[row.prompt].append(index)
    for waiting in places.values():
        waiting.reverse()
    pairs = [
        (index, places[row.prompt].pop())
        for index, row in enumerate(before.rows)
        if row.prompt is not None and places.get(row.prompt)
    ]
    if len(pairs) < PAIRED_MIN * max(before.n, after.n):
        first = Resamples.of(before.wall, resamples=resamples, seed=seed)
        second = Resamples.of(after.wall, resamples=resamples, seed=seed + 1)
        return Pairing(before, after, first, second, paired=False)
    one, other = before.pick([pair[0] for pair in pairs]), after.pick([pair[1] for pair in pairs])
    length = max(block_length(one.wall), block_length(other.wall))
    draws = Resamples.draw(len(pairs), length, resamples=resamples, seed=seed)
    return Pairing(one, other, draws, draws, paired=True)
