"""One budget of slots for several lanes: what runs at once over all of them never exceeds the cores."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

Wake = Callable[[], None]


class Slots:
    """`count` slots; lanes that found none free are woken in turn."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("a budget has at least one slot")
        self.count = count
        self.taken = 0
        self._waiting: deque[Wake] = deque()

    def take(self, wake: Wake) -> bool:
        """Take a slot; where none is free say so, and call `wake` once when one may be."""
        if self.taken < self.count:
            self.taken += 1
            return True
        if wake not in self._waiting:
            self._waiting.append(wake)
        return False

    def contested(self, wake: Wake) -> bool:
        """Whether anybody but the owner of `wake` waits for a slot."""
        return any(other != wake for other in self._waiting)

    def inherit(self) -> None:
        """Count a run that began on a slot whose run has ended, and is given back in a moment."""
        self.taken += 1

    def resize(self, count: int) -> None:
        """Have `count` slots from now on; those taken beyond it are not given out again."""
        self.count = max(1, count)
        self._wake()

    def give(self) -> None:
        """Give a slot back; a lane that was woken and needs none leaves it to the next."""
        self.taken -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.taken < self.count:
            self._waiting.popleft()()


class Resizable(Protocol):
    """Something whose number of runs at once can be changed while it runs; a lane is one."""

    @property
    def slots(self) -> int:
        """Runs at once, at most."""

    @slots.setter
    def slots(self, count: int) -> None: ...
