"""An event loop whose time is virtual: hours of traffic in seconds, and the same every time.

When nothing is ready to run, time jumps to the next timer. Nothing that runs on it may wait for a
thread, a socket or another process.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.DefaultSelector):
    """A selector that never waits: it moves the clock instead."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing is left that could ever happen in virtual time: a deadlock")
        self._advance(timeout)
        return list(super().select(0))


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on virtual time; itself a `Clock`."""

    def __init__(self) -> None:
        self._virtual = 0.0
        super().__init__(_Jump(self._advance))

    def _advance(self, seconds: float) -> None:
        self._virtual += max(0.0, seconds)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual

    def now(self) -> float:
        """The same, as a `Clock`."""
        return self._virtual


def run_virtual(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main(clock)` to its end on a fresh virtual loop and return what it returns."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))
