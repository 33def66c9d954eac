"""The block bootstrap agrees with scipy where rows are independent, and with theory where they are not."""

import numpy as np
import pytest
from scipy import stats

from tailrace.latency.bootstrap import (
    Resamples,
    block_length,
    holm,
    p_value,
    percentile_interval,
    widened,
)


def autoregressive(n: int, rho: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=n)
    values = np.empty(n)
    values[0] = noise[0]
    for index in range(1, n):
        values[index] = rho * values[index - 1] + noise[index]
    return values


def test_means_of_resamples_are_the_means_of_the_rows_drawn() -> None:
    columns = np.random.default_rng(1).lognormal(size=(103, 3))
    draws = Resamples.draw(103, 7, resamples=50, seed=2)
    by_rows = np.concatenate([columns[rows].mean(axis=1) for rows in draws.draws()])
    np.testing.assert_allclose(draws.means(columns), by_rows, rtol=1e-10)


def test_every_row_is_drawn_equally_often() -> None:
    rows = np.concatenate(list(Resamples.draw(20, 6, resamples=20_000, seed=3).draws()))
    counts = np.bincount(rows.ravel(), minlength=20)
    assert counts.min() > 0.97 * counts.mean()


@pytest.mark.parametrize("n", [10, 38, 100, 1000])
def test_resamples_of_few_rows_are_widened_as_student_is_wider_than_normal(n: int) -> None:
    far = stats.t.ppf(0.995, n - 1) / stats.norm.ppf(0.995) * np.sqrt(n / (n - 1))
    made = widened(np.array([[1.0, 4.0]]), np.array([2.0, 2.0]), n)
    assert made == pytest.approx(np.array([[2.0 - far, 2.0 + 2.0 * far]]), rel=0.02)


def test_single_rows_give_scipys_interval() -> None:
    values = np.random.default_rng(4).lognormal(size=200)
    means = Resamples.draw(200, 1, seed=5).means(values[:, None])[:, 0]
    ours = percentile_interval(means)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(6)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_blocks_are_short_for_independent_rows_and_long_for_rows_that_stay_alike() -> None:
    independent = np.random.default_rng(7).normal(size=1000)
    assert block_length(independent) <= 15
    lengths = [block_length(autoregressive(1000, 0.9, seed)) for seed in range(20)]
    # Politis and White's b for this process: ((2 G^2 / D) n)^(1/3), G and D by their formulas, is 51.
    assert 30 <= np.median(lengths) <= 80


def test_rows_that_stay_alike_get_the_wider_interval_that_they_need() -> None:
    """The true standard error of such a mean is 1 / ((1 - rho) sqrt n)."""
    errors = []
    for seed in range(20):
        values = autoregressive(1000, 0.8, seed)
        errors.append(Resamples.of(values, seed=seed).means(values[:, None]).std())
    true = 1 / (0.2 * np.sqrt(1000))
    assert np.mean(errors) == pytest.approx(true, rel=0.2)
    naive = Resamples.draw(1000, 1).means(autoregressive(1000, 0.8, 1)[:, None]).std()
    assert naive < 0.5 * true


@pytest.mark.parametrize("n", [1, 2, 3, 9, 10, 11])
def test_few_rows_are_no_error(n: int) -> None:
    values = np.arange(float(n))
    draws = Resamples.of(values)
    assert draws.means(values[:, None]).shape == (5000, 1)
    assert np.concatenate(list(draws.draws())).shape == (5000, n)


def test_the_same_seed_gives_the_same_resamples() -> None:
    a, b = (Resamples.draw(50, 4, seed=9) for _ in range(2))
    assert (a.starts == b.starts).all()


def test_holm_is_the_published_procedure() -> None:
    """The example of Holm's method: each p times the number of those not yet rejected, never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_p_value_is_never_nought() -> None:
    assert p_value(np.ones(4999)) == pytest.approx(2 / 5000)
    assert p_value(np.array([-1.0, 1.0])) == 1.0
