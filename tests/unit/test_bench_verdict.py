"""A run that measured its own sender, or had not settled, is not believed."""

import random

import numpy as np
import pytest

from tailrace.bench.generator import Sent
from tailrace.bench.lag import Lag
from tailrace.bench.scenario import LoadTable
from tailrace.bench.steady import Settled, settled
from tailrace.bench.verdict import load_of, notes, reasons
from tailrace.wire.record import Part, Row

S = 1_000_000_000
STILL = Settled(0.0, None)


def rows(count=400, wall=10.0, **more):
    return [
        Row(wall, {"infer": Part(wall, "declared")}, 200, at_s=i / 100, **more)
        for i in range(count)
    ]


def sent(count=400, on_time=400, late=0.1, inside=1):
    lag = Lag([i * 5_000_000 for i in range(800)], [late] * 800, [inside] * 800)
    return Sent(0, 0, 4 * S, 0, count, on_time, lag)


def judged(found, block, settled_as=STILL, **load):
    table = LoadTable.model_validate({"rate": 100, "length": "4s", **load})
    lived = load_of(table, [block], found, settled_as)
    return lived, reasons(lived, found, [block], settled_as)


def test_a_sender_that_kept_up_is_believed():
    load, why = judged(rows(), sent())
    assert why == []
    assert load.offered_per_s == load.achieved_per_s == 100
    assert load.little_miss == pytest.approx(0.0, abs=0.01)


def test_a_busy_sender_is_not():
    _, why = judged(rows(), sent(late=3.0))
    assert "the sender was busy itself" in why[0]


def test_a_sender_that_sent_less_than_it_meant_to_is_not():
    _, why = judged(rows(380), sent(on_time=380))
    assert "95.0%" in why[0]


def test_the_rate_of_a_closed_loop_is_what_it_is():
    load, why = judged(rows(), sent(), kind="closed")
    assert why == []
    assert load.offered_per_s is None


def test_littles_law_must_hold():
    _, why = judged(rows(), sent(inside=2))
    assert "Little" in why[0]


def test_what_reaches_over_the_end_of_a_run_counts_as_far_as_it_lies_within():
    late = [Row(4000.0, {"infer": Part(4000.0, "declared")}, at_s=2.0)] * 10
    lag = Lag([i * 5_000_000 for i in range(800)], [0.1] * 800, [0] * 400 + [10] * 400)
    load, why = judged(late, Sent(0, 0, 4 * S, 0, 10, 10, lag), kind="burst")
    assert load.little_miss == pytest.approx(0.0)
    assert why == []


def test_waiting_inside_the_sender_is_no_time_on_the_way():
    late = [
        Row(15.0, {"sched": Part(5.0, "measured"), "infer": Part(10.0, "declared")}, at_s=i / 100)
        for i in range(400)
    ]
    load, _ = judged(late, sent())
    assert load.little_miss == pytest.approx(0.0, abs=0.01)


def test_answers_out_of_a_cache_are_told():
    assert "cache" in notes(rows(detail={"cache": "hit"}), [sent()])[0]


def walls(trend, seed=1, n=600):
    chance = random.Random(seed)
    at = np.sort([chance.uniform(0, 30) for _ in range(n)])
    return at, np.array([10 * trend(x) * chance.lognormvariate(0, 0.3) for x in at])


def test_a_level_run_is_steady():
    found = [settled(*walls(lambda _: 1.0, seed)) for seed in range(100)]
    assert sum(one.steady is True for one in found) >= 95
    assert sum(one.from_s > 1.0 for one in found) <= 5


def test_what_is_still_warming_up_is_cut():
    found = settled(*walls(lambda x: 3.0 if x < 6 else 1.0))
    assert 6 <= found.from_s < 9
    assert found.steady


def test_a_backlog_that_grows_is_not_steady():
    found = settled(*walls(lambda x: 1.0 + x / 10))
    assert found.steady is False
    assert found.growth > 0.3


def test_what_falls_all_the_time_is_not_steady():
    assert settled(*walls(lambda x: 4.0 - x / 10)).steady is False


def test_few_rows_say_nothing():
    assert settled(*walls(lambda _: 1.0, n=100)).steady is None
