"""What every answer cache promises, looped over the adapters."""

from collections.abc import Callable

import pytest

from tailrace.cache.memory import MemoryCache
from tailrace.cache.port import Cache

ADAPTERS: dict[str, Callable[[int], Cache]] = {"memory": MemoryCache}


@pytest.fixture(params=list(ADAPTERS))
def make(request: pytest.FixtureRequest) -> Callable[[int], Cache]:
    return ADAPTERS[request.param]


def test_an_answer_is_found_under_its_own_key_only(make: Callable[[int], Cache]) -> None:
    cache = make(10)
    cache.put(("model-a", "text"), 1)
    assert cache.get(("model-a", "text")) == 1
    assert cache.get(("model-b", "text")) is None
    assert cache.get(("model-a", "Text")) is None


def test_hits_and_misses_are_counted_and_survive_clearing(make: Callable[[int], Cache]) -> None:
    cache = make(10)
    cache.put("a", 1)
    cache.get("a")
    cache.get("b")
    cache.clear()
    assert cache.get("a") is None
    stats = cache.stats()
    assert (stats.entries, stats.entries_max, stats.hits, stats.misses) == (0, 10, 1, 2)


def test_the_one_unused_for_longest_makes_room(make: Callable[[int], Cache]) -> None:
    cache = make(3)
    for key in "abc":
        cache.put(key, key)
    cache.get("a")
    cache.put("d", "d")
    assert cache.get("b") is None
    assert [cache.get(key) for key in "acd"] == ["a", "c", "d"]


def test_putting_again_refreshes_and_replaces(make: Callable[[int], Cache]) -> None:
    cache = make(2)
    cache.put("a", 1)
    cache.put("b", 1)
    cache.put("a", 2)
    cache.put("c", 1)
    assert cache.get("a") == 2
    assert cache.get("b") is None


def test_a_cache_of_no_entries_keeps_nothing_and_does_not_mind(
    make: Callable[[int], Cache],
) -> None:
    cache = make(0)
    cache.put("a", 1)
    assert cache.get("a") is None
    assert cache.stats().entries == 0


def test_it_never_grows_beyond_its_bound(make: Callable[[int], Cache]) -> None:
    cache = make(50)
    for i in range(1000):
        cache.put(i, i)
        assert cache.stats().entries <= 50
    assert all(cache.get(i) == i for i in range(950, 1000))
