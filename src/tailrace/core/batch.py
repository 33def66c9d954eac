"""Which waiting work goes to the model together. Pure: plain data in, plain data out."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from tailrace.core.work import Work


@dataclass(frozen=True, slots=True)
class BatchRule:
    """How large a shared run may grow and how long an idle model waits for company.

    Work without a `batch_key` always runs alone and never waits for company.
    """

    items_max: int = 1
    cost_max: float = inf
    window_s: float = 0.0

    def companions(self, members: list[Work], waiting: Iterable[Work]) -> list[Work]:
        """The waiting work that may join `members` (at least one), in order of arrival."""
        first = members[0]
        if first.batch_key is None:
            return []
        room = self.items_max - len(members)
        cost = sum(member.cost for member in members)
        joining: list[Work] = []
        for work in waiting:
            if len(joining) >= room:
                break
            if work.batch_key == first.batch_key and cost + work.cost <= self.cost_max:
                joining.append(work)
                cost += work.cost
        return joining

    def closed(self, members: list[Work]) -> bool:
        """Whether nobody else may join."""
        return members[0].batch_key is None or len(members) >= self.items_max

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
