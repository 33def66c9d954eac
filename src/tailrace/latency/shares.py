"""What share of the time each part takes, of the mean and of the tail, and which part leads.

Shares are how a bottleneck is named: a part may weigh more without having become longer. Knows one run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.latency.bootstrap import RESAMPLES, Resamples, percentile_interval
from tailrace.latency.interval import Interval
from tailrace.latency.sample import Floats, Sample, sample
from tailrace.latency.tails import deepest_tail, resampled_tails, tail_of
from tailrace.wire.record import Row


@dataclass(frozen=True, slots=True)
class Share:
    """One part's mean and share, with 95 % intervals."""

    name: str
    ms: float
    ms_interval: Interval
    share: float
    """Of the whole, 0..1; below nought for a negative residual."""
    interval: Interval
    lead: float
    """In which share of the resamples this part is the largest."""

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        return {
            "ms": self.ms,
            "ms_interval": self.ms_interval.to_json(),
            "share": self.share,
            "interval": self.interval.to_json(),
            "lead": self.lead,
        }


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts of a run's mean, and of its tail where enough rows make one."""

    mean: tuple[Share, ...]
    tail_q: float | None
    """Which tail it is: the deepest that the rows carry; None where there are too few."""
    tail: tuple[Share, ...]

    def leader(self) -> Share:
        """The part that is largest in the most resamples of the mean."""
        return max(self.mean, key=lambda part: (part.lead, part.share))

    def to_json(self) -> dict[str, object]:
        """Both tables by part name."""
        return {
            "mean": {part.name: part.to_json() for part in self.mean},
            "tail_q": self.tail_q,
            "tail": {part.name: part.to_json() for part in self.tail},
        }


def shares(rows: Sequence[Row], *, resamples: int = RESAMPLES, seed: int = 0) -> Shares:
    """Of the steady, served rows; raises BadSample where none are."""
    return shares_of(sample(rows), resamples=resamples, seed=seed)


def shares_of(steady: Sample, *, resamples: int = RESAMPLES, seed: int = 0) -> Shares:
    """The same of a sample that is already made."""
    draws = Resamples.of(steady.wall, resamples=resamples, seed=seed)
    mean = _table(steady.names, steady.means, draws.means(steady.ms))
    q = deepest_tail(steady.n)
    tail: tuple[Share, ...] = ()
    if q is not None:
        budget = tail_of(steady, q).parts
        exact = np.array([budget[name] for name in steady.names])
        tail = _table(steady.names, exact, resampled_tails(steady.wall, steady.ms, draws, q))
    return Shares(mean, q, tail)


def of_whole(means: Floats) -> Floats:
    """Means of parts, along the last axis, as shares of their sum; all nought where the sum is."""
    whole = means.sum(axis=-1, keepdims=True)
    portions: Floats = np.divide(means, whole, out=np.zeros_like(means), where=whole != 0)
    return portions


def leads(means: Floats) -> Floats:
    """For each column, in which share of the lines it is the largest."""
    largest = np.bincount(means.argmax(axis=1), minlength=means.shape[1])
    return np.asarray(largest / len(means), dtype=np.float64)


def _table(names: Sequence[str], means: Floats, resampled: Floats) -> tuple[Share, ...]:
    portion, portions, lead = of_whole(means), of_whole(resampled), leads(resampled)
    return tuple(
        Share(
            name=name,
            ms=float(means[column]),
            ms_interval=percentile_interval(resampled[:, column]),
            share=float(portion[column]),
            interval=percentile_interval(portions[:, column]),
            lead=float(lead[column]),
        )
        for column, name in enumerate(names)
    )
