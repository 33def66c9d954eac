"""The bottleneck is said to have moved when it has, and only then."""

import numpy as np
import pytest

from drawn import GENERATE_BEFORE, QUEUE_AFTER, row, rows
from tailrace.latency.moved import moved
from tailrace.wire.record import Row


def test_the_essays_shift_is_found_and_named() -> None:
    verdict = moved(rows(200, GENERATE_BEFORE, 1), rows(200, QUEUE_AFTER, 2))
    assert verdict.kind == "moved"
    assert (verdict.before, verdict.after) == ("generate", "net")
    assert verdict.text.startswith("moved from generate to net: +9")
    true = (275 - 60) / 502 - (275 - 900) / 1295
    assert verdict.change is not None
    assert true in verdict.change.interval


def test_no_change_is_not_a_move() -> None:
    kinds = [
        moved(rows(100, QUEUE_AFTER, seed), rows(100, QUEUE_AFTER, 900 + seed), resamples=1000).kind
        for seed in range(50)
    ]
    assert "moved" not in kinds


def test_at_a_hundred_rows_the_essays_shift_is_found_in_nine_tries_of_ten() -> None:
    found = [
        moved(rows(100, GENERATE_BEFORE, seed), rows(100, QUEUE_AFTER, 500 + seed), resamples=1000)
        for seed in range(60)
    ]
    right = [one for one in found if one.kind == "moved"]
    assert len(right) >= 54
    assert {(one.before, one.after) for one in right} == {("generate", "net")}


def test_a_leader_that_stays_is_said_to_stay() -> None:
    slower = {**GENERATE_BEFORE, "generate": 1200.0}
    verdict = moved(rows(100, GENERATE_BEFORE, 1), rows(100, slower, 2))
    assert verdict.kind == "stayed"
    assert verdict.change is None


def test_equal_parts_are_a_tie() -> None:
    even = {"net": 200.0, "generate": 200.0}
    spread = {"net": 0.1, "generate": 0.1}
    one, other = (rows(400, even, seed, spread=spread) for seed in (1, 4))
    verdict = moved(one, other)
    assert verdict.kind == "tie"
    assert "net and generate are within 5 points" in verdict.text.replace(
        "generate and net", "net and generate"
    )


def test_noise_wider_than_the_difference_is_not_decidable_and_asks_for_rows() -> None:
    near = {"net": 275.0, "queue": 240.0}
    wide = {"net": 0.1, "queue": 1.2}
    verdict = moved(rows(40, near, 1, spread=wide), rows(40, near, 2, spread=wide))
    assert verdict.kind == "not decidable"
    assert verdict.rows_needed is not None
    assert verdict.rows_needed > 40
    assert f"about {verdict.rows_needed} rows would tell" in verdict.text


def test_a_handful_of_rows_decides_nothing() -> None:
    verdict = moved(rows(9, GENERATE_BEFORE, 1), rows(100, QUEUE_AFTER, 2))
    assert verdict.kind == "not decidable"
    assert verdict.rows_needed == 10


def test_a_move_within_what_the_probe_differs_by_anyway_is_no_evidence() -> None:
    quiet = {"net": 0.05, "queue": 0.05}
    before = rows(200, {"net": 110.0, "queue": 100.0}, 1, spread=quiet)
    after = rows(200, {"net": 100.0, "queue": 110.0}, 2, spread=quiet)
    assert moved(before, after).kind == "moved"
    noisy = moved(before, after, aa_spread=0.06)
    assert noisy.kind == "no evidence"
    assert "measured twice differs as much" in noisy.text


def test_a_sure_but_small_move_is_no_evidence() -> None:
    quiet = {"net": 0.02, "queue": 0.02}
    before = rows(400, {"net": 102.0, "queue": 100.0}, 1, spread=quiet)
    after = rows(400, {"net": 100.0, "queue": 102.0}, 2, spread=quiet)
    verdict = moved(before, after)
    assert verdict.kind == "no evidence"
    assert "less than 5 points" in verdict.text


def test_hours_with_a_crowd_of_their_own_are_few_observations() -> None:
    """Rows within an hour are alike, hours are not, and nothing else changed between the days."""
    random = np.random.default_rng(5)

    def day() -> list[Row]:
        crowd = np.repeat(random.lognormal(4.6, 1.0, 8), 25) * random.lognormal(0, 0.05, 200)
        return [
            row({"net": 100.0, "queue": float(ms)}, at_s=float(i)) for i, ms in enumerate(crowd)
        ]

    kinds = [moved(day(), day(), resamples=1000).kind for _ in range(100)]
    assert kinds.count("moved") <= 2


def test_a_leader_that_lost_its_place_to_a_tie_is_named() -> None:
    even = {"net": 250.0, "queue": 250.0, "generate": 60.0}
    verdict = moved(rows(200, GENERATE_BEFORE, 1), rows(200, even, 2))
    assert verdict.kind in {"tie", "not decidable"}
    assert "generate led before and no longer does" in verdict.text


def test_requests_that_were_cut_off_may_leave_the_leader_open() -> None:
    answered = rows(60, QUEUE_AFTER, 1)
    cut = [
        row({"net": 275.0, "generate": 1225.0}, outcome="timeout", at_s=float(i)) for i in range(40)
    ]
    verdict = moved(rows(100, GENERATE_BEFORE, 2), [*answered, *cut])
    assert verdict.kind == "not decidable"
    assert "40% of the requests were cut off" in verdict.text


def test_a_part_that_one_run_lacks_took_no_time_in_it() -> None:
    think = {**QUEUE_AFTER, "think": 2_000.0}
    spread = {"net": 0.1, "queue": 1.0, "generate": 0.4, "think": 0.4}
    verdict = moved(rows(100, think, 1, spread=spread), rows(100, QUEUE_AFTER, 2))
    assert (verdict.kind, verdict.before, verdict.after) == ("moved", "think", "net")


@pytest.mark.parametrize("q", [0.9])
def test_the_tail_may_be_led_by_another_part_than_the_mean(q: float) -> None:
    verdict = moved(rows(400, GENERATE_BEFORE, 1), rows(400, QUEUE_AFTER, 2), tail_q=q)
    assert (verdict.kind, verdict.before, verdict.after) == ("moved", "generate", "queue")
    assert verdict.of == "the slowest 10 %"


def test_the_same_rows_and_seed_give_the_same_verdict() -> None:
    pair = (rows(60, GENERATE_BEFORE, 1), rows(60, QUEUE_AFTER, 2))
    assert moved(*pair, seed=3) == moved(*pair, seed=3)
