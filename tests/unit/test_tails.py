"""Tail budgets add up exactly, and shares carry intervals."""

import numpy as np
import pytest

from drawn import QUEUE_AFTER, row, rows
from tailrace.latency.sample import BadSample, sample
from tailrace.latency.shares import shares
from tailrace.latency.tails import deepest_tail, tail_budget
from tailrace.wire.record import IDENTITY_MS, Part, Row


@pytest.mark.parametrize("q", [0.5, 0.9, 0.95, 0.99])
def test_the_parts_of_a_tail_add_up_to_its_mean(q: float) -> None:
    run = rows(1000, QUEUE_AFTER, 1)
    budget = tail_budget(run, q)
    walls = np.array([each.wall_ms for each in run])
    slowest = walls[walls >= np.quantile(walls, q)]
    assert budget.rows == len(slowest)
    assert abs(budget.total_ms - slowest.mean()) < IDENTITY_MS
    assert sum(budget.parts.values()) == budget.total_ms


def test_a_tail_says_how_many_of_its_rows_were_cut_off() -> None:
    run = [*rows(95, QUEUE_AFTER, 2), *[row({"queue": 9_000.0}, outcome="timeout")] * 5]
    budget = tail_budget(run, 0.95)
    assert (budget.rows, budget.censored) == (5, 5)
    assert budget.parts == {"net": 0.0, "queue": 9_000.0, "generate": 0.0}


def test_the_deepest_tail_is_the_one_that_ten_rows_carry() -> None:
    found = {n: deepest_tail(n) for n in (39, 40, 100, 200, 1000)}
    assert found == {39: None, 40: 0.75, 100: 0.9, 200: 0.95, 1000: 0.99}


def test_shares_add_up_to_one_and_their_intervals_hold_the_true_ones() -> None:
    hits = {"net": 0, "queue": 0, "generate": 0}
    whole = sum(QUEUE_AFTER.values())
    for seed in range(100):
        found = shares(rows(200, QUEUE_AFTER, seed), resamples=1000)
        assert sum(part.share for part in found.mean) == pytest.approx(1.0)
        assert sum(part.share for part in found.tail) == pytest.approx(1.0)
        for part in found.mean:
            hits[part.name] += QUEUE_AFTER[part.name] / whole in part.interval
    assert min(hits.values()) >= 88  # 95 in 100, less three standard errors


def test_the_queue_leads_a_tail_that_distance_leads_on_average() -> None:
    found = shares(rows(1000, QUEUE_AFTER, 3))
    assert found.leader().name == "net"
    assert max(found.tail, key=lambda part: part.lead).name == "queue"


def test_only_steady_served_rows_count() -> None:
    run = [
        row({"queue": 5.0}, phase="cold"),
        row({"queue": 7.0}, at_s=2.0),
        row({"queue": 6.0}, at_s=1.0),
        row({"queue": 1.0}, outcome="refused"),
    ]
    steady = sample(run)
    assert steady.wall.tolist() == [6.0, 7.0]
    assert steady.answered_share == pytest.approx(2 / 3)


def test_several_sittings_are_ordered_by_the_wall_clock() -> None:
    run = [
        row({"queue": 7.0}, at_s=0.0, unix_s=200.0),
        row({"queue": 6.0}, at_s=9.0, unix_s=100.0),
    ]
    assert sample(run).wall.tolist() == [6.0, 7.0]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ([], "has no rows"),
        ([row({"net": 1.0}, phase="cold")], "outside its warm-up"),
        ([row({"net": 1.0}, outcome="error")] * 3, "no answered request (3 error)"),
        ([row({"net": 1500.0}, outcome="timeout")] * 3, "was cut off (>= 1500 ms)"),
        ([Row(1.0, {"net": Part(float("nan"), "measured")})], "net of nan ms cannot be"),
        ([Row(float("inf"), {"net": Part(1.0, "measured")})], "wall time of inf ms"),
        ([Row(9.0, {"net": Part(1.0, "measured")})], "parts miss its wall time by -8.000 ms"),
        ([Row(0.0, {})], "has no parts"),
    ],
)
def test_what_gives_no_honest_figure_is_refused_in_one_sentence(run: list[Row], said: str) -> None:
    with pytest.raises(BadSample) as refused:
        sample(run, "the run")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
