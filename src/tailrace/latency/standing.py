"""Which part leads a run, and how surely: its shares, resampled. Knows one run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.latency.bootstrap import Resamples, widened
from tailrace.latency.sample import Floats, Sample
from tailrace.latency.shares import leads, of_whole
from tailrace.latency.tails import resampled_tails, tail_of

LEAD = 0.95
"""In which share of the resamples a part must be the largest to be called the leader."""
LEAD_Z = 1.645
"""The normal quantile of LEAD: used to plan a number of rows, never to judge."""
POINTS_MIN = 0.05
"""A smaller difference of shares is of no use to anybody; what "equal" means in a tie."""
STRETCHES = 8
STRETCHES_MIN = 4
STRETCH_ROWS_MIN = 8
STUDENT_T = {3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895}
"""Student's t at LEAD, one-sided, by degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Parts as columns, in the order that was asked for."""

    sample: Sample
    columns: Floats
    """One line per row, in milliseconds."""
    shares: Floats
    """Of the run itself."""
    resampled: Floats
    """The same in each resample."""
    lead: Floats
    """For each part, in which share of the resamples it is the largest."""

    @property
    def leader(self) -> int:
        """The part that is the largest in the most resamples."""
        return int(np.lexsort((self.shares, self.lead))[-1])

    @property
    def firm(self) -> bool:
        """Whether that part leads beyond doubt: in the resamples, and by stretches of time.

        A few hours that each have their own crowd are few observations, however many rows they hold.
        """
        if self.lead[self.leader] < LEAD:
            return False
        second, first = self.second(), self.leader
        variance = self.between_stretches(second, first)
        if variance is None:
            return True
        student = STUDENT_T[self.stretches - 1]
        return bool(self.shares[first] - self.shares[second] >= student * math.sqrt(variance))

    @property
    def stretches(self) -> int:
        """Into how many stretches of time the run is cut; 0 where it is too short for that."""
        stretches = min(STRETCHES, self.sample.n // STRETCH_ROWS_MIN)
        return stretches if stretches >= STRETCHES_MIN else 0

    def second(self) -> int:
        """The largest of the other parts."""
        others = self.shares.copy()
        others[self.leader] = -math.inf
        return int(others.argmax())

    def cut_off_decides(self) -> bool:
        """Whether another part leads among the answered rows alone than among all.

        Of a request that was cut off nobody knows which part would have grown.
        """
        answered = ~self.sample.censored
        if answered.all():
            return False
        alone = self.columns[answered].mean(axis=0)
        return int(alone.argmax()) != int(self.columns.mean(axis=0).argmax())

    def rows_needed(self, gaps: Floats) -> int:
        """Rows at which a gap like the resampled ones would be a lead: its error falls with the root."""
        gap = max(abs(float(gaps.mean())), POINTS_MIN)
        needed = self.sample.n * (LEAD_Z * float(gaps.std()) / gap) ** 2
        return max(self.sample.n + 1, math.ceil(needed / 10) * 10)

    def between_stretches(self, x: int, y: int) -> float | None:
        """The variance of (share of y - share of x) by how much stretches of the run differ.

        None where the run is too short to be cut into STRETCHES_MIN of them.
        """
        if not self.stretches:
            return None
        cut = np.array_split(self.columns, self.stretches)
        portions = of_whole(np.array([stretch.mean(axis=0) for stretch in cut]))
        return float((portions[:, y] - portions[:, x]).var(ddof=1) / self.stretches)


def standing(
    run: Sample, names: Sequence[str], tail_q: float | None, resamples: int, seed: int
) -> Standing:
    """Of the mean, or of the tail beyond `tail_q`."""
    columns = run.on(names)
    draws = Resamples.of(run.wall, resamples=resamples, seed=seed)
    if tail_q is None:
        means, exact = draws.means(columns), columns.mean(axis=0)
    else:
        means = resampled_tails(run.wall, columns, draws, tail_q)
        parts = tail_of(run, tail_q).parts
        exact = np.array([parts.get(name, 0.0) for name in names])
    shares = of_whole(exact)
    resampled = widened(of_whole(means), shares, run.n) if run.n > 1 else of_whole(means)
    return Standing(run, columns, shares, resampled, leads(resampled))
