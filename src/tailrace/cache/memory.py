"""Answers kept in memory, the least recently used leaving first. A restart forgets them."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from tailrace.cache.port import CacheStats


class MemoryCache:
    """At most `entries_max` answers; 0 keeps none."""

    def __init__(self, entries_max: int = 1000) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._hits = 0
        self._misses = 0

    def get(self, key: Hashable) -> Any | None:
        """The answer kept for `key`, or None."""
        if key not in self._entries:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: Hashable, value: Any) -> None:
        """Keep an answer."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget every answer."""
        self._entries.clear()

    def close(self) -> None:
        """Nothing to let go of."""

    def stats(self) -> CacheStats:
        """The present numbers."""
        return CacheStats(len(self._entries), self._entries_max, self._hits, self._misses)
