"""Deciding, before any waiting, whether work may enter: a verdict of policies.

A policy looks at the work and at the lane and answers the latest start it allows, or refuses with a
reason. It needs no event loop and releases nothing; the verdict does not depend on the order of
policies. The lane enforces the latest start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, runtime_checkable

from tailrace.core.errors import Rejected
from tailrace.core.events import Settled
from tailrace.core.work import Work


@dataclass(frozen=True, slots=True)
class LaneView:
    """What a policy may know of the line: a still picture."""

    now: float
    waiting: int
    running: int
    """Pieces of work on the model now."""
    free: int
    """Slots with nothing to do: work that finds one starts without taking a seat."""
    start_in_s: float
    """Expected seconds until work admitted now would start."""
    service_s: float
    """Expected seconds on the model for the work in question."""
    pace_s: float = 0.0
    """Expected seconds in which the lane finishes one such piece while the line is long."""
    paused_s: float = 0.0
    """Seconds for which the lane starts nothing, because the model asked for a pause."""


class Policy(Protocol):
    """One rule of admission."""

    def admit(self, work: Work, view: LaneView) -> float:
        """The latest start this policy allows (`inf` for any); raises Rejected and nothing else."""

    def observe(self, settled: Settled) -> None:
        """Learn from what became of admitted work."""


@runtime_checkable
class Foreseeing(Protocol):
    """A policy that can tell from an estimate of the work what it will say, and counts nothing by it."""

    def foresee(self, work: Work, view: LaneView, doubt_s: float) -> None:
        """Raise what `admit` would even if the work were ready `doubt_s` sooner; all are estimates."""


class AllOf:
    """Several policies as one: every one is asked, all must agree, the earliest latest start counts.

    All are asked even after one refused, so that what a policy counts does not depend on its place in
    the list; the refusal that asks for the longest pause is the one reported.
    """

    def __init__(self, policies: Sequence[Policy] = ()) -> None:
        self.policies = tuple(policies)
        self._foreseeing = [policy for policy in policies if isinstance(policy, Foreseeing)]

    def foresee(self, work: Work, view: LaneView, doubt_s: float = 0.0) -> None:
        """Raise what some policy is going to say, before it is known what exactly the work costs."""
        for policy in self._foreseeing:
            policy.foresee(work, view, doubt_s)

    def admit(self, work: Work, view: LaneView) -> float:
        """The earliest latest start, or the refusal with the longest pause."""
        latest = inf
        refusals: list[Rejected] = []
        for policy in self.policies:
            try:
                latest = min(latest, policy.admit(work, view))
            except Rejected as refusal:
                refusals.append(refusal)
        if refusals:
            raise max(refusals, key=lambda refusal: (refusal.retry_after_s or 0.0, refusal.code))
        return latest

    def observe(self, settled: Settled) -> None:
        """Tell every policy."""
        for policy in self.policies:
            policy.observe(settled)
