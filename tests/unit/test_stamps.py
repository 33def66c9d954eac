"""The chain of stamps: parts that add up to the whole by construction."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.work import Stamps

names = st.sampled_from(["parse", "cache", "admit", "wait", "batch", "infer", "handover"])


@settings(max_examples=200, deadline=None)
@given(
    start=st.floats(0.0, 1e7),
    closes=st.lists(st.tuples(names, st.floats(-5.0, 1e3)), max_size=30),
)
def test_parts_add_up_to_the_whole_whatever_the_moments(
    start: float, closes: list[tuple[str, float]]
) -> None:
    stamps, latest = Stamps(start), start
    for part, offset in closes:
        stamps.close(part, start + offset)
        latest = max(latest, start + offset)
        assert stamps.last == latest
    parts = stamps.parts()
    assert all(seconds >= 0.0 for seconds in parts.values())
    assert abs(sum(parts.values()) - stamps.total) <= 1e-9 * max(1.0, len(closes)) + start * 1e-15
    assert stamps.total == latest - start


def test_a_part_that_happens_twice_adds_up_under_its_one_name() -> None:
    stamps = Stamps(10.0)
    for part, at in (("infer", 11.0), ("wait", 11.5), ("infer", 13.0)):
        stamps.close(part, at)
    assert stamps.parts() == {"infer": 2.5, "wait": 0.5}


def test_a_moment_before_the_last_stamp_counts_as_the_last_stamp() -> None:
    stamps = Stamps(10.0)
    stamps.close("wait", 12.0)
    stamps.close("tokenize", 11.0)
    stamps.close("infer", 13.0)
    assert stamps.parts() == {"wait": 2.0, "tokenize": 0.0, "infer": 1.0}


def test_parts_come_in_the_order_in_which_they_first_happened_and_are_a_copy() -> None:
    stamps = Stamps(0.0)
    for part in ("b", "a", "b", "c"):
        stamps.close(part, 1.0)
    assert list(stamps.parts()) == ["b", "a", "c"]
    stamps.parts()["a"] = 99.0
    assert stamps.parts()["a"] == 0.0
