"""Waking up on time: asyncio's own timers are rounded up to a millisecond, which is a part of a request.

On Linux the kernel's timer (timerfd) wakes the loop within tens of microseconds; elsewhere asyncio's is used.
"""

import asyncio
import ctypes
import os
import struct
import sys
from types import TracebackType
from typing import Self

from tailrace.latency.exchange import now_ns

CLOCK_MONOTONIC = 1
TIMER_ABSOLUTE = 1
NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


class Alarm:
    """One timer; one waiter at a time. A context: what it holds of the kernel is given back."""

    def __init__(self) -> None:
        self._fd = _timer()
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        if self._fd is not None:
            asyncio.get_running_loop().add_reader(self._fd, self._rang)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None

    async def until(self, moment_ns: int) -> None:
        """Sleep until the moment of `now_ns`; returns at once where it has passed."""
        ahead = moment_ns - now_ns()
        if ahead <= 0:
            return
        if self._fd is None:
            await asyncio.sleep(ahead / 1e9)
            return
        self._waiter = asyncio.get_running_loop().create_future()
        _set(self._fd, moment_ns)
        await self._waiter

    def _rang(self) -> None:
        assert self._fd is not None
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


_LIBC = _library()


def _timer() -> int | None:
    if _LIBC is None:
        return None
    fd: int = _LIBC.timerfd_create(CLOCK_MONOTONIC, NONBLOCK_CLOEXEC)
    return fd if fd >= 0 else None


def _set(fd: int, moment_ns: int) -> None:
    """Once, at an absolute moment of CLOCK_MONOTONIC: `struct itimerspec` without an interval."""
    assert _LIBC is not None
    spec = struct.pack("=qqqq", 0, 0, moment_ns // 1_000_000_000, moment_ns % 1_000_000_000)
    _LIBC.timerfd_settime(fd, TIMER_ABSOLUTE, spec, None)
