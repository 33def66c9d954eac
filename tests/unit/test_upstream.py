"""What an upstream's pause means, and what is known of a model elsewhere."""

from email.utils import formatdate
from time import time

import pytest

from tailrace.models.remote import remote_info
from tailrace.models.upstream import PAUSE_S, PAUSE_S_MAX, _pause_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, PAUSE_S),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, PAUSE_S),
        ({"retry-after": "nan"}, PAUSE_S),
        ({"retry-after": "inf"}, PAUSE_S_MAX),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, PAUSE_S_MAX),
        ({"retry-after-ms": "x"}, PAUSE_S),
    ],
    ids=str,
)
def test_a_pause_is_read_and_bounded(headers, seconds):
    assert _pause_s(headers) == seconds


def test_a_pause_may_be_a_date():
    assert 25 < _pause_s({"retry-after": formatdate(time() + 30, usegmt=True)}) <= 30


def test_the_fingerprint_is_the_place_and_the_model_not_our_name_for_it():
    url = "https://llm.example/v1"
    first = remote_info("a", url, "m", "embedding", 512)
    assert remote_info("b", f"{url}/", "m", "embedding", 512).fingerprint == first.fingerprint
    assert remote_info("a", url, "n", "embedding", 512).fingerprint != first.fingerprint
    assert remote_info("a", f"{url}2", "m", "embedding", 512).fingerprint != first.fingerprint
