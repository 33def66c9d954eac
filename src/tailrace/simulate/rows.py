"""A replayed request as a row: the same parts as a measured one, adding up to its wall time.

Knows nothing of lanes and of statistics.
"""

from collections.abc import Mapping

from tailrace.simulate.pulled import Brought
from tailrace.simulate.visits import Stay, Visit
from tailrace.wire.record import CLIENT_PARTS, Part, Row


def as_row(stay: Stay, visit: Visit, brought: Brought, *, warm: bool = False) -> Row:
    """The row; what its caller did not wait for is not in it."""
    ms: dict[str, float] = {}
    ms |= _portion(brought.before, _share(stay.before_s, visit.before_s, stay.tries))
    net = brought.net / 2 * _share(stay.before_s, visit.before_s, stay.tries)
    ms["queue"] = stay.queue_s * 1000
    served = sum(brought.service.values())
    if served > 0:
        ms |= {n: v / served * stay.service_s * 1000 for n, v in brought.service.items()}
    reached = _share(stay.after_s, visit.after_s, stay.tries)
    ms |= {name: value * reached for name, value in brought.after.items()}
    ms["net"] = net + brought.net / 2 * reached
    if stay.paused_s:
        ms["sched"] = ms.get("sched", 0.0) + stay.paused_s * 1000
    wall_ms = stay.wall_s * 1000
    ms["other"] = wall_ms - sum(ms.values())
    detail: dict[str, object] = {"server_batch": stay.batch} if stay.batch else {}
    if stay.tries > 1:
        detail["tries"] = stay.tries
    return Row(
        wall_ms=wall_ms,
        parts={name: Part(ms[name], "estimated") for name in CLIENT_PARTS if name in ms},
        status=stay.status,
        outcome=stay.outcome,
        at_s=stay.at_s,
        phase="warm-up" if warm else "steady",
        detail=detail,
    )


def _portion(parts: Mapping[str, float], share: float) -> dict[str, float]:
    return {name: value * share for name, value in parts.items()}


def _share(seconds: float, whole_s: float, tries: int) -> float:
    """How much of a stretch was gone through: at most once a try; what took longer is waiting, not travel."""
    return min(seconds / whole_s, float(tries)) if whole_s > 0 else 1.0
