"""The naive door's child: everything at once, until memory runs out.

Chooses the child's memory limit where none is given, by measuring what a crowd costs here.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence

from tailrace.core.errors import ModelError
from tailrace.core.events import Events
from tailrace.models.child import ChildModel

log = logging.getLogger(__name__)

CROWD = 12
"""As on the box this comes from: so many at once must be too many."""
TRIAL = 4
"""How many at once are measured."""
FIT = 7
"""How many must fit under the limit chosen from the measure."""
SAMPLE = "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔고 직원분도 친절했어요"


def naive_command(source: str, cache_dir: str | None) -> list[str]:
    """The child's command line."""
    place = ["--cache-dir", cache_dir] if cache_dir else []
    return [sys.executable, "-m", "tailrace.models.child_main", "--source", source, *place]


async def choose_limit(child: ChildModel, labels: Sequence[str]) -> int:
    """Measure what one and a few at once use, and set a limit that `FIT` fit under and `CROWD` do not.

    Returns the limit in bytes, which is also set on the child.
    """
    await child.wait_ready()
    body = {"text": SAMPLE, "labels": list(labels)}
    try:
        await child.ask(body)
        await asyncio.sleep(0.3)
        base = child.resident_bytes
        child.peak_bytes = 0
        await asyncio.gather(*(child.ask(body) for _ in range(TRIAL)))
    except ModelError as error:
        log.warning("the naive child could not be measured (%s); it runs without a limit", error)
        return 0
    each = max(1 << 20, (child.peak_bytes - base) // TRIAL)
    child.limit_bytes = base + FIT * each
    limit, used, more = child.limit_bytes >> 20, base >> 20, each >> 20
    log.info("naive limit %d MiB: %d MiB, and %d MiB for each caller", limit, used, more)
    child.peak_bytes = child.resident_bytes
    return child.limit_bytes


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
