"""The box as it is now, for /api/stats, the event stream and the page. Reads, decides nothing."""

from typing import Any

from tailrace.apps.review.box import DOORS, ReviewBox
from tailrace.tickets.port import State


def snapshot(box: ReviewBox) -> dict[str, Any]:
    """Everything that changes while the box runs; holds no clock that only ticks."""
    waiting = box.waiting()
    cache, counts = box.cache.stats(), box.desk.ledger.counts()
    return {
        "model": box.model.info.name,
        "ready": box.ready()[0],
        "lane": {
            "name": box.lane.name,
            "slots": box.lane.slots,
            "running": box.lane.running,
            "waiting": box.lane.waiting,
            "service_s": round(box.service_s(), 3),
            "line": [
                {"door": work.door, "state": "running" if boarded else "waiting"}
                for work, boarded in box.lane.line()[:100]
            ],
        },
        "doors": {name: _door(box, name, waiting[name]) for name in DOORS},
        "tickets": {
            **{str(state): counts[state] for state in State},
            "limit": box.doors["queue"].seats,
        },
        "cache": {"entries": cache.entries, "hits": cache.hits, "misses": cache.misses},
        "naive": _naive(box),
    }


def _door(box: ReviewBox, name: str, waiting: int) -> dict[str, Any]:
    door = box.doors.get(name)
    return {
        "in_progress": box.in_progress[name],
        "waiting": waiting,
        "answered": box.answered[name],
        "refused": dict(box.refused[name]),
        "seats": door.seats if door else None,
    }


def _naive(box: ReviewBox) -> dict[str, Any] | None:
    child = box.child
    if child is None:
        return None
    return {
        "running": child.running,
        "state": "ready" if child.ready else "starting",
        "rss_bytes": child.resident_bytes >> 20 << 20,
        "peak_bytes": child.peak_bytes,
        "limit_bytes": child.limit_bytes,
        "restarts": child.restarts,
        "killed_because": child.killed_because,
    }


def model_card(box: ReviewBox) -> dict[str, Any]:
    """What the model is, and what it reads reviews against."""
    info, settings = box.model.info, box.settings.review
    return {
        "name": info.name,
        "source": info.source,
        "kind": info.kind,
        "fingerprint": info.fingerprint,
        "size_bytes": info.size_bytes,
        "quantisation": info.quantisation,
        "max_tokens": info.max_tokens,
        "batch_invariant": info.batch_invariant,
        "detail": info.detail,
        "topics": [
            {"id": name, "label": label}
            for name, label in zip(box.topics.ids, box.topics.labels, strict=True)
        ],
        "topics_fingerprint": box.topics.fingerprint,
        "weak_below": settings.weak_below,
        "text_max_chars": settings.text_max_chars,
    }
