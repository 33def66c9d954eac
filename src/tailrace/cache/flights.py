"""Single flight: who asks what is being computed already waits for that, and nobody computes it twice.

Every caller has a future of its own: one who leaves takes nobody along, and when the last has left the
computation is given up too. Runs on one event loop.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class _Flight:
    shared: asyncio.Future[Any]
    until: float
    waiters: list[asyncio.Future[Any]] = field(default_factory=list)


class Flights:
    """Computations under way, by key; bounded by what the lane behind them lets in."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}
        self.joined = 0

    def __len__(self) -> int:
        return len(self._flights)

    def under_way(self, key: Hashable, until: float) -> bool:
        """Whether there is a computation of `key` that a caller with this deadline may wait for."""
        flight = self._flights.get(key)
        return flight is not None and flight.until >= until

    def join(
        self, key: Hashable, until: float, start: Callable[[], asyncio.Future[Any]]
    ) -> asyncio.Future[Any]:
        """A future of the value of `key`; calls `start` where nothing fitting is under way.

        `until` is the caller's deadline: a computation that ends earlier than that does not fit.
        What `start` raises is raised.
        """
        if self.under_way(key, until):
            flight = self._flights[key]
            self.joined += 1
        else:
            flight = _Flight(start(), until)
            self._flights[key] = flight
            flight.shared.add_done_callback(lambda shared: self._landed(key, flight, shared))
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        flight.waiters.append(waiter)
        waiter.add_done_callback(lambda done: self._left(flight, done))
        return waiter

    def _left(self, flight: _Flight, waiter: asyncio.Future[Any]) -> None:
        if not waiter.cancelled():
            return
        flight.waiters.remove(waiter)
        if not flight.waiters and not flight.shared.done():
            flight.shared.cancel()

    def _landed(self, key: Hashable, flight: _Flight, shared: asyncio.Future[Any]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        error = None if shared.cancelled() else shared.exception()
        for waiter in list(flight.waiters):
            if waiter.done():
                continue
            if shared.cancelled():
                waiter.cancel()
            elif error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(shared.result())
