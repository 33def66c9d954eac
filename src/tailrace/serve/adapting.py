"""Lets an adaptive limit set the slots of a lane: a listener on the lane's runs."""

from tailrace.core.clock import Clock
from tailrace.core.events import Event, RunFinished
from tailrace.core.slots import Resizable
from tailrace.policies.adaptive import AdaptiveLimit, Ended


class Adapting:
    """Tells `limit` of every run of the lane called `name`, and the lane of the limit."""

    def __init__(self, name: str, lane: Resizable, limit: AdaptiveLimit, clock: Clock) -> None:
        self._name = name
        self._lane = lane
        self._limit = limit
        self._clock = clock

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        if not isinstance(event, RunFinished) or event.lane != self._name:
            return
        now = self._clock.now()
        ended = Ended(
            now - event.seconds,
            now,
            event.running,
            clean=event.clean,
            overload=event.overload,
        )
        slots = self._limit.observe(ended)
        if slots != self._lane.slots:
            self._lane.slots = slots
