"""The naive door's child: everything at once, until memory runs out.

Chooses the child's memory limit where none is given, by measuring what a crowd costs here.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence

from tailrace.bench.reviews import reviews
from tailrace.core.errors import ModelError
from tailrace.core.events import Events
from tailrace.models.child import ChildModel

log = logging.getLogger(__name__)

CROWD = 12
"""As on the box this comes from: so many at once must be too many."""
FIT_SHARE = 0.6
"""The limit is passed when a crowd of `CROWD` has taken this share of what it would take."""
LEAST_ROOM = 12 << 20
"""Bytes above rest that the limit leaves at least: with few topics a crowd takes hardly more."""
MEASURE_S_MAX = 120.0
"""A child that cannot be measured in this time runs without a limit."""
SETTLE_S = 0.25
"""Pause between two looks at memory that is going back to the system."""


def naive_command(source: str, cache_dir: str | None) -> list[str]:
    """The child's command line."""
    place = ["--cache-dir", cache_dir] if cache_dir else []
    return [sys.executable, "-m", "tailrace.models.child_main", "--source", source, *place]


async def choose_limit(child: ChildModel, labels: Sequence[str]) -> int:
    """Let a crowd in once without a limit, and set one that it would not have survived.

    Returns the limit in bytes, which is also set on the child; 0 where it could not be measured.
    """
    crowd = [{"text": text, "labels": list(labels)} for text in reviews(CROWD)]
    try:
        async with asyncio.timeout(MEASURE_S_MAX):
            await child.wait_ready()
            await child.ask(crowd[0])
            await _settled(child)
            child.peak_bytes = 0
            await asyncio.gather(*(child.ask(body) for body in crowd))
            peak = child.peak_bytes
            idle = await _settled(child)  # what a crowd leaves behind is not given back for a time
    except (ModelError, TimeoutError) as error:
        log.warning("the naive child could not be measured (%r); it runs without a limit", error)
        return 0
    taken = peak - idle
    child.limit_bytes = idle + max(LEAST_ROOM, int(FIT_SHARE * taken))
    child.peak_bytes = child.resident_bytes
    limit, before, more = child.limit_bytes >> 20, idle >> 20, taken >> 20
    log.info(
        "naive limit %d MiB: %d MiB idle, %d MiB more for %d at once", limit, before, more, CROWD
    )
    return child.limit_bytes


async def _settled(child: ChildModel) -> int:
    """The child's memory when it has stopped falling."""
    used = child.resident_bytes
    while True:
        await asyncio.sleep(SETTLE_S)
        if child.resident_bytes >= used:
            return child.resident_bytes
        used = child.resident_bytes


def naive_child(
    source: str,
    cache_dir: str | None,
    *,
    limit_bytes: int,
    in_flight_max: int,
    events: Events,
) -> ChildModel:
    """The child, not started yet."""
    return ChildModel(
        "naive",
        naive_command(source, cache_dir),
        limit_bytes=limit_bytes,
        in_flight_max=in_flight_max,
        events=events,
    )
