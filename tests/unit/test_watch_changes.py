"""Change points: none is found where nothing changed, the essay's shift is, a spike is no change."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from tailrace.latency.watch.changes import CHANCE, SEGMENT_MIN, shifts, split

SERIES = 300


def quiet(seed: int, n: int, heavy: bool) -> list[float]:
    chance = np.random.default_rng(seed)
    noise = chance.standard_t(3, n) if heavy else chance.normal(size=n)
    return (200.0 * np.exp(0.1 * noise)).tolist()


@pytest.mark.parametrize("heavy", [False, True])
def test_of_300_series_without_a_change_at_most_one_in_a_hundred_alarms(heavy: bool) -> None:
    alarms = sum(
        bool(shifts({"total p50": quiet(seed, 40, heavy)}, 200.0, frozenset()))
        for seed in range(SERIES)
    )
    assert alarms <= SERIES // 100


def test_the_essays_shift_is_found_within_three_rounds() -> None:
    found = 0
    for seed in range(50):
        chance = np.random.default_rng(seed)
        level = np.array([900.0] * 20 + [60.0] * SEGMENT_MIN)
        values = (level * np.exp(0.2 * chance.normal(size=len(level)))).tolist()
        told = shifts({"generate p50": values}, 1000.0, frozenset())
        found += [one.index for one in told] == [20]
    assert found >= 45


def test_the_place_is_the_one_that_trying_every_place_finds() -> None:
    for seed in range(40):
        chance = np.random.default_rng(seed)
        values = chance.normal(size=30) + np.where(np.arange(30) >= 6 + seed % 18, 4.0, 0.0)
        places = range(SEGMENT_MIN, len(values) - SEGMENT_MIN + 1)
        tried = {place: ttest_ind(values[:place], values[place:]).pvalue for place in places}
        best = min(tried, key=lambda place: tried[place])
        assert split(values.tolist()) == (best, pytest.approx(tried[best]))


@pytest.mark.parametrize("spikes", [1, 2])
def test_a_spike_or_two_at_the_end_is_no_change(spikes: int) -> None:
    values = quiet(1, 20, heavy=False)
    assert not shifts({"p": [*values, *[2000.0] * spikes]}, 200.0, frozenset())


def test_what_is_small_or_the_same_is_no_change() -> None:
    small = [0.1] * 15 + [0.2] * 15
    assert not shifts({"dns p50": small}, 200.0, frozenset())
    assert not shifts({"total p50": [7.0] * 30}, 7.0, frozenset())
    assert not shifts({"total p50": [1.0, 9.0] * 2}, 7.0, frozenset())
    (one,) = shifts({"net share": [0.1] * 15 + [0.6] * 15}, 200.0, frozenset({"net share"}))
    assert (one.index, one.before, one.after) == (15, 0.1, 0.6)
    assert one.p <= CHANCE
