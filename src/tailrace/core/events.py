"""The one hook through which everything that happens can be watched.

Whoever raises an event does not know who listens; a listener that fails is logged and never felt.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened; subclasses say what."""


@dataclass(frozen=True, slots=True)
class Admitted(Event):
    """Work took a seat."""

    lane: str
    door: str


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """Work was turned away, with the code of the reason."""

    lane: str
    door: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A batch went to the model."""

    lane: str
    doors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """The model let go of a batch, in whatever way."""

    lane: str
    items: int
    seconds: float
    failed: bool
    clean: bool = False
    """Whole and undisturbed: its time tells how long runs take."""
    overload: bool = False
    """The model said, or its time-outs did, that it was asked for too much at once."""
    running: int = 0
    """Runs that were on the model when it ended, itself included."""


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """One piece of admitted work came to its end.

    `outcome` is done, failed, queue-timeout, model-timeout or left; `wait_s` is admitted to started on
    the model, the gathering of a batch included.
    """

    lane: str
    door: str
    outcome: str
    wait_s: float
    service_s: float
    batch_size: int


@dataclass(frozen=True, slots=True)
class CacheLookup(Event):
    """An answer was looked up."""

    door: str
    hit: bool


@dataclass(frozen=True, slots=True)
class TicketMoved(Event):
    """A ticket changed its state; `before` is None for a new one."""

    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class ChildRestarted(Event):
    """A model's process was found dead and is being started again."""

    name: str
    reason: str


Listener = Callable[[Event], None]


class Events:
    """Hands each event to every listener that asked for its kind, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._subscribed: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self._listeners: dict[type[Event], list[Listener]] = {}

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> None:
        """Have `listener` called with every event of these kinds from now on, in the thread that raised it.

        Without kinds it is called with every event.
        """
        self._subscribed.append((listener, kinds or (Event,)))
        self._listeners.clear()

    def emit(self, event: Event) -> None:
        """Tell everybody; never raises."""
        kind = type(event)
        listeners = self._listeners.get(kind)
        if listeners is None:
            asked = self._subscribed
            listeners = [listener for listener, kinds in asked if issubclass(kind, kinds)]
            self._listeners[kind] = listeners
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed on %s", kind.__name__)
