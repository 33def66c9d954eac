"""The histogram of parts, beside the library's own histogram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from tailrace.core.work import Stamps
from tailrace.serve.account import Account
from tailrace.serve.metrics import PART_SECONDS, Metrics

seconds = st.one_of(st.sampled_from(PART_SECONDS), st.floats(0.0, 100.0))


@given(st.lists(st.tuples(st.sampled_from(["wait", "infer"]), seconds), max_size=20))
def test_it_says_what_the_librarys_histogram_says(parts):
    metrics = Metrics("app", [])
    registry = CollectorRegistry()
    library = Histogram(
        "app_part_seconds", "x", ("door", "part"), buckets=PART_SECONDS, registry=registry
    )
    now = 0.0
    for part, took in parts:
        stamps = Stamps(now)
        stamps.close(part, now + took)
        metrics.ended(Account(stamps, door="a"))
        library.labels("a", part).observe(stamps.total)
    ours = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in metrics.registry.collect()
        if family.name == "app_part_seconds"
        for sample in family.samples
    }
    theirs = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    assert ours.keys() == theirs.keys()
    assert ours == pytest.approx(theirs)


def test_what_came_through_no_door_is_not_counted():
    metrics = Metrics("app", [])
    stamps = Stamps(0.0)
    stamps.close("fetch", 1.0)
    metrics.ended(Account(stamps))
    metrics.ended(Account(None, door="a"))
    assert b"app_part_seconds_count" not in generate_latest(metrics.registry)
