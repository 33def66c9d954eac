"""Which waiting work goes to the model together. Pure: plain data in, plain data out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

from tailrace.core.work import Work

LOOKAHEAD = 128
"""How far down the line company is looked for."""


@dataclass(frozen=True, slots=True)
class BatchRule:
    """How large a shared run may grow and how long an idle model waits for company.

    Work without a `batch_key` always runs alone and never waits for company. Bulk is no company for
    others: they would last as long as it does. With `padded` a run costs
    as much as if every member were as long as the longest, and company of like length is taken first.
    """

    items_max: int = 1
    cost_max: float = inf
    window_s: float = 0.0
    padded: bool = False

    def cost(self, members: Sequence[Work]) -> float:
        """What one run of `members` costs."""
        if self.padded:
            return max(work.cost for work in members) * len(members)
        return sum(work.cost for work in members)

    def companions(
        self, members: Sequence[Work], waiting: Iterable[Work], cost_max: float = inf
    ) -> list[Work]:
        """The waiting work that joins `members` (at least one); as many as the bounds allow.

        `cost_max` is a bound for this run alone.
        """
        cost_max = min(cost_max, self.cost_max)
        first = members[0]
        if first.batch_key is None or len(members) >= self.items_max:
            return []
        alike = [
            work
            for work in islice(waiting, LOOKAHEAD)
            if work.batch_key == first.batch_key and work.bulk == first.bulk
        ]
        if self.padded:
            alike.sort(key=lambda work: abs(work.cost - first.cost))
        joining: list[Work] = []
        count = len(members)
        costs = [work.cost for work in members]
        longest, total = max(costs), sum(costs)
        for work in alike:
            if count >= self.items_max:
                break
            longer, more = max(longest, work.cost), total + work.cost
            if (longer * (count + 1) if self.padded else more) <= cost_max:
                joining.append(work)
                count, longest, total = count + 1, longer, more
        return joining

    def usual_items(self, cost: float) -> int:
        """How many pieces of this cost fill one run."""
        fits = self.cost_max / cost if cost > 0 else inf
        return max(1, int(min(self.items_max, fits)))

    def closed(self, members: Sequence[Work]) -> bool:
        """Whether nobody else may join."""
        full = len(members) >= self.items_max or self.cost(members) >= self.cost_max
        return members[0].batch_key is None or full

    def runs(self, line: Iterable[Work]) -> list[list[Work]]:
        """How the whole line would be run if nobody else came: for estimates."""
        rest = list(line)
        planned: list[list[Work]] = []
        while rest:
            members = [rest.pop(0)]
            for work in self.companions(members, rest):
                members.append(work)
                rest.remove(work)
            planned.append(members)
        return planned
