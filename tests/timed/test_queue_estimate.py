"""The queue estimate against the real lane on a virtual clock, whose queue is known and hidden."""

from dataclasses import replace

import numpy as np
import pytest

from drawn import row
from tailrace.latency.queue_estimate import ALONE_MIN, Estimate, Undecided, estimate_queue
from tailrace.simulate.plan import LanePlan
from tailrace.simulate.replay import replay
from tailrace.simulate.visits import Visit
from tailrace.wire.record import IDENTITY_MS, Part

SEED = 20261201
N = 1500


def untold(stay, size, **known):
    """What a client sees of a server that tells nothing: the way, and the rest of its wait."""
    ms = {"sched": 0.0, "net": 4.0, "other": (stay.queue_s + stay.service_s) * 1000}
    made = row(ms, at_s=stay.at_s, detail={"sent_bytes": size, **known})
    return replace(made, parts={**made.parts, "other": Part(ms["other"], "residual")})


def seen(use, draw, slots=1, n=N, seed=SEED):
    """Rows of Poisson arrivals at this use of the slots, and the true queue of each, in ms."""
    rng = np.random.default_rng(seed)
    services, sizes = draw(rng, n)
    arrivals = np.cumsum(rng.exponential(services.mean() / (use * slots), n))
    visits = [Visit(float(a), weight=float(s)) for a, s in zip(arrivals, services, strict=True)]
    stays = replay(visits, LanePlan(slots=slots), sum).stays
    rows = [untold(stay, float(size)) for stay, size in zip(stays, sizes, strict=True)]
    return rows, np.array([stay.queue_s * 1000 for stay in stays])


def always(rng, n):
    del rng
    return np.full(n, 0.1), np.full(n, 50.0)


def scattered(rng, n):
    return rng.gamma(16.0, 0.1 / 16, n), np.full(n, 50.0)


def by_size(rng, n):
    """Long texts take longer, as a language model's do, and a little of it is chance."""
    sizes = rng.lognormal(5.0, 0.6, n)
    return sizes * 4e-4 * rng.normal(1.0, 0.05, n).clip(0.5), sizes


def queues(estimate):
    return np.array([one.parts["queue"].ms for one in estimate.rows])


@pytest.mark.parametrize("use", [0.5, 0.75])
@pytest.mark.parametrize(
    ("draw", "slots"), [(always, 1), (scattered, 1), (by_size, 1), (always, 2), (by_size, 2)]
)
def test_the_estimate_is_within_a_tenth_of_the_true_mean_and_p95(use, draw, slots):
    rows, true = seen(use, draw, slots)
    estimate = estimate_queue(rows)
    assert isinstance(estimate, Estimate)
    found = queues(estimate)
    assert found.mean() == pytest.approx(true.mean(), rel=0.1)
    assert np.quantile(found, 0.95) == pytest.approx(np.quantile(true, 0.95), rel=0.1)
    assert estimate.mean_ms == pytest.approx(found.mean())


def in_spells(rng, n):
    """A machine that is half as fast for a while, time and again."""
    slow = (np.arange(n) // 60) % 3 == 2
    return np.where(slow, 0.2, 0.1) * rng.normal(1.0, 0.05, n).clip(0.5), np.full(n, 50.0)


def test_slow_spells_are_not_taken_for_a_queue():
    rows, true = seen(0.5, in_spells)
    found = queues(estimate_queue(rows))
    assert found.mean() == pytest.approx(true.mean(), rel=0.1)
    assert np.quantile(found, 0.95) == pytest.approx(np.quantile(true, 0.95), rel=0.1)


def test_nine_in_ten_true_queues_lie_in_their_rows_interval():
    rows, true = seen(0.75, scattered)
    estimate = estimate_queue(rows)
    inside = [
        one.parts["queue"].low <= ms <= one.parts["queue"].high
        for one, ms in zip(estimate.rows, true, strict=True)
    ]
    assert 0.85 < np.mean(inside) < 0.95


def test_the_mean_lies_in_its_interval_in_nineteen_of_twenty_seeds():
    hits = 0
    for seed in range(40):
        rows, true = seen(0.5, scattered, n=400, seed=seed)
        hits += true.mean() in estimate_queue(rows).mean
    assert hits >= 35


def test_parts_add_up_as_before_and_every_estimate_has_an_interval():
    rows, _ = seen(0.75, by_size, n=400)
    for one in estimate_queue(rows).rows:
        assert abs(one.miss_ms()) <= IDENTITY_MS
        for name in ("queue", "infer"):
            assert one.parts[name].source == "estimated"
            assert one.parts[name].low <= one.parts[name].ms <= one.parts[name].high
        assert one.parts["other"].source == "residual"
        assert one.parts["other"].ms == pytest.approx(0.0, abs=1e-6)


def test_a_declared_queue_is_never_overwritten():
    rows, _ = seen(0.75, always, n=400)
    told = replace(rows[200], parts={**rows[200].parts, "queue": Part(0.0, "declared")})
    estimate = estimate_queue([*rows[:200], told, *rows[201:]])
    assert estimate.rows[200] is told
    every = [replace(one, parts={**one.parts, "queue": Part(0.0, "declared")}) for one in rows]
    assert estimate_queue(every) == Undecided()


def test_a_declared_service_stays_and_what_is_around_it_remains_residual():
    rows, true = seen(0.75, always, n=600)
    told = [
        replace(
            one,
            parts={
                **one.parts,
                "infer": Part(90.0, "declared"),
                "other": replace(one.parts["other"], ms=one.parts["other"].ms - 90.0),
            },
        )
        for one in rows
    ]
    estimate = estimate_queue(told)
    assert queues(estimate) == pytest.approx(true, abs=0.01)
    for one in estimate.rows:
        assert one.parts["infer"] == Part(90.0, "declared")
        assert one.parts["other"].ms == pytest.approx(10.0, abs=0.01)
        assert abs(one.miss_ms()) <= IDENTITY_MS


def test_too_few_alone_or_too_few_in_company_is_not_decidable():
    crowded, _ = seen(0.98, always, n=300)
    lonely, _ = seen(0.02, always, n=300)
    for rows, word in ((crowded, "came alone"), (lonely, "while another was inside")):
        undecided = estimate_queue(rows)
        assert isinstance(undecided, Undecided)
        assert word in undecided.why


def test_what_a_cache_answered_and_what_was_cold_or_failed_is_left_as_it_is():
    rows, true = seen(0.5, always, n=600)
    odd = {
        10: replace(rows[10], detail={**rows[10].detail, "cache": "hit"}),
        20: replace(rows[20], phase="cold"),
        30: replace(rows[30], outcome="error", status=500),
    }
    estimate = estimate_queue([odd.get(place, one) for place, one in enumerate(rows)])
    for place, one in odd.items():
        assert estimate.rows[place] is one
    rest = [place for place in range(len(rows)) if place not in odd]
    found = np.array([estimate.rows[place].parts["queue"].ms for place in rest])
    assert found == pytest.approx(true[rest], abs=0.01)


def test_what_was_given_up_may_still_be_inside_so_who_came_next_was_not_alone():
    rows, _ = seen(0.1, always, n=2 * ALONE_MIN)
    cut = [replace(one, outcome="timeout", wall_ms=1e9) for one in rows[:1]]
    undecided = estimate_queue([*cut, *rows[1:]])
    assert isinstance(undecided, Undecided)
    assert "0 requests came alone" in undecided.why
