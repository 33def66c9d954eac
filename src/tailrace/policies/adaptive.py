"""How many runs a model elsewhere should be given at once, found from how long they take.

Vegas (Brakmo and Peterson 1995), by windows: runs that take longer than they would alone are waiting
inside the upstream, and `at once x (1 - alone / now)` of them are. Fewer than `LOW` waiting: one more
at once; more than `HIGH`: as many as do not wait. A refusal or a time-out cuts to `CUT`, and the number
that was refused is not tried again for `SHY` windows.

What a run takes alone is not asked once for ever: at the floor it is what is seen, and every `PROBE`
windows one window at half the limit shows it, so an upstream that became slower (or faster) as a whole
is found out. Where it keeps still, the limit keeps within one of its mean, probes left out.

Pure: told of every run that ended, answers the limit. Knows no lane and no clock.
"""

from dataclasses import dataclass, field
from math import inf

SAMPLES = 8
"""Runs in one window, at least; a window has as many as the limit, if that is more."""
LOW, LOW_SHARE = 0.6, 0.08
"""Waiting inside the upstream, in runs and as a share of the limit, below which the limit rises."""
HIGH, HIGH_SHARE = 1.7, 0.25
"""The same, above which it falls."""
CUT = 0.8
"""What a refusal leaves of the limit."""
SHY = 20
"""Windows for which a limit that was refused is not tried again."""
PROBE = 40
"""Windows from one look at half the limit to the next."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One run that ended."""

    started: float
    ended: float
    running: int
    """Runs on the model when it ended, itself included."""
    clean: bool = True
    """Whether its time tells how long runs take."""
    overload: bool = False
    """Whether the upstream refused it, or let it time out."""


@dataclass(slots=True)
class _Window:
    """Clean runs that began and ended under one limit."""

    seconds: float = 0.0
    running: float = 0.0
    count: int = 0
    most: int = 0

    def add(self, ended: Ended) -> None:
        self.seconds += ended.ended - ended.started
        self.running += ended.running
        self.count += 1
        self.most = max(self.most, ended.running)


@dataclass(slots=True)
class AdaptiveLimit:
    """The limit, between `floor` and `ceiling`; starts at the floor and doubles until runs wait."""

    floor: int = 1
    ceiling: int = 64
    limit: int = field(init=False)
    alone_s: float = field(init=False, default=inf)
    """What a run is believed to take when it waits for nobody."""
    _window: _Window = field(init=False, default_factory=_Window)
    _since: float = field(init=False, default=-inf)
    _doubling: bool = field(init=False, default=True)
    _refused_at: int | None = field(init=False, default=None)
    _shy: int = field(init=False, default=0)
    _to_probe: int = field(init=False, default=PROBE)
    _before_probe: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not 1 <= self.floor <= self.ceiling:
            raise ValueError("the floor is at least 1 and at most the ceiling")
        self.limit = self.floor

    def observe(self, ended: Ended) -> int:
        """Take one run in and answer the limit from now on.

        A run that began before the limit last changed tells of the past and is left out.
        """
        if ended.started < self._since:
            return self.limit
        if ended.overload:
            self._cut(ended.ended)
        elif ended.clean:
            self._window.add(ended)
            if self._window.count >= max(SAMPLES, self.limit):
                self._close(ended.ended)
        return self.limit

    def _cut(self, now: float) -> None:
        """Too much: keep below what was refused for a while."""
        self._refused_at, self._shy = self._before_probe or self.limit, SHY
        self._before_probe = None
        self._doubling = False
        self._move(int(self.limit * CUT), now)

    def _close(self, now: float) -> None:
        """Judge a full window."""
        window, self._window = self._window, _Window()
        seconds, running = window.seconds / window.count, window.running / window.count
        if self._shy:
            self._shy -= 1
        if self._before_probe is not None:
            self.alone_s = seconds
            back, self._before_probe = self._before_probe, None
            self._move(back, now)
            return
        if self.limit == self.floor:
            self.alone_s = seconds
        self.alone_s = min(self.alone_s, seconds)
        inside = running * (1.0 - self.alone_s / seconds) if seconds > 0 else 0.0
        if inside > max(HIGH, HIGH_SHARE * self.limit):
            self._fall(inside, now)
        elif inside < max(LOW, LOW_SHARE * self.limit):
            self._rise(window.most, now)
        else:
            self._doubling = False
        self._probe(now)

    def _fall(self, inside: float, now: float) -> None:
        """As many as do not wait, and one; at most to the half at a time."""
        self._doubling = False
        target = max(self.limit // 2, round(self.limit - inside) + 1)
        self._move(min(self.limit - 1, target), now)
        if self.limit == self.floor:
            self._doubling = True

    def _rise(self, most: int, now: float) -> None:
        """More, if what there is was made use of and the next was not refused lately."""
        if most < self.limit:
            return
        target = self.limit * 2 if self._doubling else self.limit + 1
        if self._refused_at is not None:
            if self._shy:
                target = min(target, max(self.floor, self._refused_at - 1))
            elif target >= self._refused_at:
                target, self._refused_at = self._refused_at, None
        self._move(target, now)

    def _probe(self, now: float) -> None:
        """Now and then, look how long runs take at half the limit."""
        self._to_probe -= 1
        half = max(self.floor, self.limit // 2)
        if self._to_probe <= 0 and half < self.limit:
            self._to_probe, self._before_probe = PROBE, self.limit
            self._move(half, now)

    def _move(self, limit: int, now: float) -> None:
        """Change the limit; what began under the old one does not count for the new."""
        limit = min(self.ceiling, max(self.floor, limit))
        if limit != self.limit:
            self.limit, self._since = limit, now
            self._window = _Window()
