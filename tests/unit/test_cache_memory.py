"""The cache in memory against a plain list."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.cache.memory import MemoryCache


@settings(max_examples=150, deadline=None)
@given(
    entries_max=st.integers(0, 5),
    steps=st.lists(st.tuples(st.sampled_from(["get", "put"]), st.integers(0, 8)), max_size=60),
)
def test_it_keeps_exactly_the_ones_used_last(
    entries_max: int, steps: list[tuple[str, int]]
) -> None:
    cache, used, hits = MemoryCache(entries_max), [], 0
    for step, key in steps:
        if step == "put":
            cache.put(key, key + 1)
            used = [k for k in used if k != key] + [key]
            used = used[-entries_max:] if entries_max else []
        else:
            found = cache.get(key)
            assert (found is not None) == (key in used)
            if found is not None:
                assert found == key + 1
                hits += 1
                used = [k for k in used if k != key] + [key]
    assert cache.stats().entries == len(used)
    assert cache.stats().hits == hits
