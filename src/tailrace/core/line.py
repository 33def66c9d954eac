"""The line of those who wait: fair between callers, patient between classes, the same for everybody.

Start-time fair queueing (Goyal, Vin, Cheng 1996): work is tagged when it joins, with the virtual time at
which its caller's share reaches it, and served in the order of the tags. A caller alone is served in the
order of arrival; one that sends twenty times more than others waits behind itself. Work of a lower class
adds to its tag the amount of service it lets pass; later work is tagged ever higher, so it ages and
cannot starve. The order is total and a tag never changes, so a place can always be told.

Virtual time is counted in cost. Knows nothing of batches, slots or clocks.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice

from tailrace.core.seats import Seat
from tailrace.core.work import Work

CALLERS_REMEMBERED = 10_000
"""Callers whose share is kept in mind; those who are not behind are forgotten first."""

Tag = tuple[float, int]


class Line:
    """Seats in the order in which they will be served."""

    def __init__(self) -> None:
        self._order: list[tuple[Tag, Seat]] = []
        self._tags: dict[Work, tuple[Tag, float]] = {}
        self._cost = 0.0
        self._owed: dict[str, float] = {}
        self._virtual = 0.0
        self._number = 0

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Seat]:
        return (seat for _, seat in self._order)

    def __contains__(self, seat: object) -> bool:
        return isinstance(seat, Seat) and seat.work in self._tags

    @property
    def head(self) -> Seat:
        """Who is next; the line must not be empty."""
        return self._order[0][1]

    def join(self, seat: Seat) -> None:
        """Take the place that the caller's share and the work's class give."""
        start = self._start(seat.work)
        self._number += 1
        tag = (start + seat.work.yields, self._number)
        self._owed[seat.work.caller] = start + seat.work.cost
        self._tags[seat.work] = (tag, start)
        insort(self._order, (tag, seat))  # tags are unique: seats are never compared
        self._cost += seat.work.cost
        if len(self._owed) > CALLERS_REMEMBERED:
            self._forget()

    def leave(self, seat: Seat) -> None:
        """Give the place up."""
        place = self._place(seat.work)
        del self._tags[seat.work]
        del self._order[place]
        self._cost = self._cost - seat.work.cost if self._order else 0.0

    def board(self, seat: Seat) -> None:
        """Leave the line because it is one's turn: virtual time moves on."""
        self._virtual = max(self._virtual, self._tags[seat.work][1])
        self.leave(seat)

    def ahead_of(self, work: Work) -> Iterator[Seat]:
        """Those who are served before `work`, which is in the line or would join now."""
        return (seat for _, seat in islice(self._order, self._place(work)))

    def ahead(self, work: Work | None = None) -> tuple[int, float]:
        """How many are served before `work` and what they cost together; by default all.

        Asked at every refusal, so it walks over no more than the shorter end of the line.
        """
        if work is None:
            return len(self._order), self._cost
        place = self._place(work)
        if 2 * place < len(self._order):
            return place, _cost(self._order[:place])
        return place, self._cost - _cost(self._order[place:])

    def _place(self, work: Work) -> int:
        """Where `work` is in the line, or would be if it joined now."""
        known = self._tags.get(work)
        tag = known[0] if known else (self._start(work) + work.yields, self._number + 1)
        return bisect_left(self._order, (tag,))

    def _start(self, work: Work) -> float:
        return max(self._virtual, self._owed.get(work.caller, 0.0))

    def _forget(self) -> None:
        behind = {who: owed for who, owed in self._owed.items() if owed > self._virtual}
        self._owed = dict(list(behind.items())[-CALLERS_REMEMBERED // 2 :])


def _cost(entries: list[tuple[Tag, Seat]]) -> float:
    return sum(seat.work.cost for _, seat in entries)
