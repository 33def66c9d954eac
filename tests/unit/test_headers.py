"""Header codecs of the shared vocabulary."""

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.wire.headers import (
    PARTS,
    RETRY_AFTER,
    RETRY_AFTER_MS,
    TOTAL,
    parse_server_timing,
    retry_after,
    server_timing,
)

seconds = st.floats(0.0, 1000.0)
parts = st.dictionaries(st.sampled_from(PARTS), seconds, max_size=len(PARTS))


@settings(max_examples=200, deadline=None)
@given(parts)
def test_what_is_sent_is_read_back_and_adds_up_within_a_twentieth_of_a_millisecond(
    sent: dict[str, float],
) -> None:
    read = parse_server_timing(server_timing(sent))
    total = read.pop(TOTAL)
    assert list(read) == list(sent)
    for name, milliseconds in read.items():
        assert abs(milliseconds - sent[name] * 1000) <= 0.0005 + 1e-6
    assert abs(sum(read.values()) - total) <= 0.05


def test_the_total_comes_last() -> None:
    assert server_timing({"parse": 0.001, "infer": 0.25}).endswith("total;dur=251.000")


@pytest.mark.parametrize(
    ("value", "timing"),
    [
        ("", {}),
        ("miss", {}),
        ("cache;desc=hit;dur=1.5", {"cache": 1.5}),
        ('db;dur="2.25" , app ; DUR = 3', {"db": 2.25, "app": 3.0}),
        ("bad;dur=fast, good;dur=1", {"good": 1.0}),
        (";dur=1", {"": 1.0}),
    ],
)
def test_what_others_send_is_read_as_far_as_it_makes_sense(
    value: str, timing: dict[str, float]
) -> None:
    assert parse_server_timing(value) == timing


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 1e6))
def test_both_headers_say_the_same_rounded_up_and_never_nothing(after: float) -> None:
    headers = retry_after(after)
    whole, exact = int(headers[RETRY_AFTER]), int(headers[RETRY_AFTER_MS])
    assert whole == max(1, ceil(after - 1e-9))
    assert whole >= 1
    assert exact >= 1
    assert exact >= after * 1000 - 0.001
