"""Predictions beside fresh runs of the same truth, in virtual time: another rate, another door, the most.

The truth is a box whose runs of k take (8 + 12 k) ms times lognormal weights; the prediction sees only rows.
"""

import numpy as np
import pytest

from tailrace.core.batch import BatchRule
from tailrace.latency.prediction import expected
from tailrace.simulate.curve import BatchCurve
from tailrace.simulate.levers import parse
from tailrace.simulate.plan import CallerPlan, LanePlan
from tailrace.simulate.prepare import prepare
from tailrace.simulate.recorded import Arrivals, found_arrivals, recorded
from tailrace.simulate.replay import replay
from tailrace.simulate.visits import Visit
from tailrace.wire.record import Part, Row

pytestmark = pytest.mark.alone

TRUTH = BatchCurve(0.008, 0.012)
TURNAROUND_S = 0.0004
NET_S, OTHER_S = 0.002, 0.001
RATE = 25.0
"""Half of what the limited door can answer."""
DOORS = {
    "limited": LanePlan(seats=4, queue_timeout_s=15.0),
    "batched": LanePlan(shares=True, seats=64, batch=BatchRule(items_max=8, window_s=0.025)),
    "queue": LanePlan(seats=20, tickets=True),
}
CASES = {
    "limited, faster": (["rate=1.5x"], "limited", 1.5),
    "limited to batched": (["rate=1.8x", "door=batched"], "batched", 1.8),
    "alone to queue": (["rate=1.6x", "door=queue"], "queue", 1.6),
}


def came(plan, rate, n, seed):
    """Rows as a probe would have measured them."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, n))
    weights = rng.lognormal(-0.045, 0.3, n)
    visits = [
        Visit(float(a), before_s=NET_S / 2, weight=float(w), after_s=NET_S / 2 + OTHER_S)
        for a, w in zip(arrivals, weights, strict=True)
    ]
    callers = CallerPlan()
    played = replay(visits, plan, TRUTH.run_s, turnaround_s=TURNAROUND_S, callers=callers)
    return [row_of(stay) for stay in played.stays]


def row_of(stay):
    ms = {"net": NET_S * 1e3, "queue": stay.queue_s * 1e3, "infer": stay.service_s * 1e3}
    ms["other"] = stay.wall_s * 1e3 - sum(ms.values())
    parts = {name: Part(value, "declared") for name, value in ms.items()}
    detail = {"server_batch": stay.batch} if stay.batch else {}
    return Row(stay.wall_s * 1e3, parts, stay.status, stay.outcome, stay.at_s, detail=detail)


@pytest.fixture(scope="module")
def base():
    rows = came(DOORS["limited"], RATE, 1200, seed=1)
    return recorded(rows, found_arrivals(rows, Arrivals(rate=RATE)))


@pytest.fixture(scope="module")
def ladder():
    return recorded(came(DOORS["batched"], 1.9 * RATE, 800, seed=2)).sizes


@pytest.mark.parametrize("case", CASES)
def test_figures_of_a_fresh_run_are_foretold(base, ladder, case):
    words, door, factor = CASES[case]
    forecast = prepare(base, parse(words), DOORS["limited"], DOORS, ladder=ladder)
    assert forecast.use < 0.85
    told = expected(forecast.replicate(seed).rows for seed in range(8))
    real = expected([came(DOORS[door], RATE * factor, 4000, seed=77)])
    for figure, within in (("mean", 0.05), ("p50", 0.10), ("p95", 0.15)):
        assert_met(told.total[figure], real.total[figure].low, within, figure)
    for name, part in real.parts.items():
        if part.low > 0.1 * real.total["mean"].low:
            assert_met(told.parts[name], part.low, 0.10, name)
    assert told.refused.mid == pytest.approx(real.refused.low, abs=0.03)


def assert_met(band, real, within, name):
    assert band.mid == pytest.approx(real, rel=within) or real in band, name


@pytest.mark.parametrize("door", ["limited", "batched"])
def test_the_most_that_a_door_answers_is_foretold_within_a_tenth(base, ladder, door):
    forecast = prepare(base, parse([f"door={door}"]), DOORS["limited"], DOORS, ladder=ladder)
    most = forecast.capacity_per_s()
    rows = [row for row in came(DOORS[door], 2 * most, 4000, seed=5) if row.outcome == "ok"]
    ends = sorted(row.at_s + row.wall_ms / 1000 for row in rows)
    assert most == pytest.approx(len(ends) / ends[-1], rel=0.10)
