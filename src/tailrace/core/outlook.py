"""The lane played forward from one moment: when slots become free, what runs ahead, when new work starts.

Estimates only: it looks at the line and at what runs, and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tailrace.core.admission import LaneView
from tailrace.core.batch import BatchRule
from tailrace.core.estimate import ServiceTime, residual_s, start_in_s
from tailrace.core.line import Line
from tailrace.core.seats import Batch
from tailrace.core.work import Work

PLANNED_MAX = 100
"""Up to so many waiting are planned run by run."""
PLANNED_PADDED_MAX = 8
"""The same where runs are made of like lengths: there the average tells as much, and far sooner."""


@dataclass(slots=True)
class Outlook:
    """A lane at one moment, `now`; it starts nothing for `paused_s`."""

    now: float
    line: Line
    batches: Sequence[Batch]
    slots: int
    rule: BatchRule
    service: ServiceTime
    paused_s: float

    def free_in_s(self) -> list[float]:
        """For every slot, seconds until it is expected to be free."""
        busy = [
            residual_s(
                batch.expected_s, 0.0 if batch.started_at is None else self.now - batch.started_at
            )
            for batch in self.batches
        ]
        spare = self.slots - len(busy)
        free = busy + [0.0] * spare if spare >= 0 else sorted(busy)[-spare:]
        return [max(seconds, self.paused_s) for seconds in free]

    def ahead_s(self, before: Work | None = None) -> list[float]:
        """The expected service time of each run ahead of `before`, in order; by default of all.

        A long line is taken as full runs of its average work: exact enough, and no slower than short.
        """
        planned_max = PLANNED_PADDED_MAX if self.rule.padded else PLANNED_MAX
        count, cost = self.line.ahead(before)
        if count > planned_max and self.line.head.work.batch_key is not None:
            usual = cost / count
            items = self.rule.usual_items(usual)
            return [self.service.seconds(usual * items)] * ceil(count / items)
        ahead = self.line if before is None else self.line.ahead_of(before)
        works = [seat.work for seat in ahead]
        return [self.service.seconds(self.rule.cost(run)) for run in self.rule.runs(works)]

    def view(self, work: Work | None = None) -> LaneView:
        """A still picture for a policy that must judge `work`; by default work of the usual cost."""
        cost = self.service.typical_cost if work is None else work.cost
        piece = cost if work is None else work.cost / work.items
        shared = 1 if work is None or work.batch_key is None else self.rule.usual_items(piece)
        run_s = self.service.seconds(piece * shared)
        # Work that waits is not run alone: by its turn it has company, and lasts as long as that.
        company = min(shared, 1 + len(self.line))
        # What comes as many pieces is run on all slots, and in as many runs as it takes.
        rounds = 1 if work is None else ceil(work.items / shared / self.slots)
        return LaneView(
            now=self.now,
            waiting=len(self.line),
            running=sum(len(batch.members) for batch in self.batches),
            free=0 if self.paused_s else max(0, self.slots - len(self.batches)),
            start_in_s=start_in_s(self.free_in_s(), self.ahead_s(work)),
            service_s=(
                self.service.seconds(max(cost, piece * company)) if rounds == 1 else rounds * run_s
            ),
            pace_s=run_s / shared / self.slots,
            paused_s=self.paused_s,
        )
