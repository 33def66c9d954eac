"""How requests are received and how callers behave: what a replay is made under.

Plain data and the policies it stands for. Knows nothing of recorded runs.
"""

from dataclasses import dataclass, replace
from math import inf

from tailrace.core.admission import AllOf, Policy
from tailrace.core.batch import BatchRule
from tailrace.policies.queue_timeout import QueueTimeoutPolicy
from tailrace.policies.waiting_room import WaitingRoom
from tailrace.simulate.levers import BadLever, Levers

ALONE = BatchRule()
"""Every run is of one piece of work."""
WAITING_MAX = 100_000
"""The line of a server of which no bound is known: longer than any replay makes it."""


@dataclass(frozen=True, slots=True)
class LanePlan:
    """A lane, and the one door to it that the requests take."""

    slots: int = 1
    batch: BatchRule = ALONE
    shares: bool = False
    """Whether the door's work may share a run."""
    seats: int | None = None
    queue_timeout_s: float | None = None
    tickets: bool = False
    """Whether a desk brings the work to the lane one by one."""
    waiting_max: int = WAITING_MAX

    def admission(self) -> AllOf:
        """The door's policies."""
        policies: list[Policy] = []
        if self.seats is not None:
            policies.append(WaitingRoom(self.seats))
        if self.queue_timeout_s is not None:
            policies.append(QueueTimeoutPolicy(self.queue_timeout_s))
        return AllOf(policies)


@dataclass(frozen=True, slots=True)
class CallerPlan:
    """What callers do when no answer comes."""

    timeout_s: float = inf
    """From the intended start of each try."""
    retries: int = 0
    pause_s: float = 1.0
    """Before each further try."""
    poll_s: float = 0.05
    """Between two looks at a ticket that is not done."""


def pulled(plan: LanePlan, levers: Levers, doors: dict[str, LanePlan]) -> LanePlan:
    """The plan after the levers that concern the lane; `doors` holds a plan by door.

    Raises BadLever where a lever has nothing to work on.
    """
    if levers.door is not None:
        door = doors[levers.door]
        plan = replace(door, slots=1 if door.tickets else plan.slots)
    if levers.servers is not None:
        if plan.tickets and levers.servers > 1:
            raise BadLever("the queue door brings tickets to the model one by one: servers=1")
        plan = replace(plan, slots=levers.servers)
    if levers.seats is not None:
        plan = replace(plan, seats=levers.seats)
    if levers.queue_timeout_s is not None:
        plan = replace(plan, queue_timeout_s=levers.queue_timeout_s)
    if levers.window_s is not None or levers.batch is not None:
        if plan.tickets:
            raise BadLever("the queue door runs work alone; window and batch need door=batched")
        rule = plan.batch
        items = rule.items_max if levers.batch is None else levers.batch
        window_s = rule.window_s if levers.window_s is None else levers.window_s
        if items == 1 and levers.batch is None:
            raise BadLever("a window needs a batch to fill: say batch=8 as well, or door=batched")
        plan = replace(plan, shares=True, batch=BatchRule(items_max=items, window_s=window_s))
    return plan
