"""What the house asks of an answer cache: protocol and data only."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How full a cache is and how often it knew the answer."""

    entries: int
    entries_max: int
    hits: int
    misses: int


class Cache(Protocol):
    """Answers by key. A key must hold the model's fingerprint: vectors of two models never meet."""

    def get(self, key: Hashable) -> Any | None:
        """The answer kept for `key`, or None; counts a hit or a miss."""

    def put(self, key: Hashable, value: Any) -> None:
        """Keep an answer; the one unused for longest makes room."""

    def clear(self) -> None:
        """Forget every answer; the counts go on."""

    def close(self) -> None:
        """Keep what is to be kept; the cache is not used any more."""

    def stats(self) -> CacheStats:
        """The present numbers."""
