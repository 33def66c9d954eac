"""Quantiles agree with scipy and numpy, say how sure they are, and are not printed on too few rows."""

import math

import numpy as np
import pytest
from scipy import stats

from tailrace.latency.quantiles import Summary, enough, interval, percentile, quantile


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 1001])
def test_a_quantile_is_what_numpy_says(n: int, q: float) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    assert quantile(values, q) == pytest.approx(np.quantile(values, q), rel=1e-12)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("q", [0.05, 0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 5, 6, 38, 200, 1000, 20_000])
def test_the_interval_is_of_the_order_statistics_that_the_binomial_names(
    n: int, q: float, level: float
) -> None:
    ranks = np.arange(1, n + 1, dtype=float)  # value = rank
    found = interval(ranks, q, level)
    miss = (1 - level) / 2
    low, high = found.low, found.high
    if math.isfinite(low):  # the largest rank with so little below it
        assert stats.binom.cdf(low - 1, n, q) <= miss + 1e-12
        assert stats.binom.cdf(low, n, q) > miss - 1e-12
    else:
        assert stats.binom.cdf(0, n, q) > miss
    if math.isfinite(high):
        assert stats.binom.sf(high - 1, n, q) <= miss + 1e-12
        assert stats.binom.sf(high - 2, n, q) > miss - 1e-12
    else:
        assert stats.binom.sf(n - 1, n, q) > miss


def test_the_interval_agrees_with_scipys_own() -> None:
    values = np.random.default_rng(1).lognormal(size=300)
    theirs = stats.quantile_test(values, p=0.95).confidence_interval(0.95)
    ours = interval(values, 0.95)
    assert (ours.low, ours.high) == (theirs.low, theirs.high)


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_interval_holds_the_true_quantile_as_often_as_it_says(q: float) -> None:
    random = np.random.default_rng(2)
    true = math.exp(stats.norm.ppf(q))
    hits = sum(true in interval(random.lognormal(size=200), q) for _ in range(1000))
    assert hits >= 935  # 95 % of 1000, less two standard errors


def test_a_p95_takes_200_rows_and_a_p99_a_thousand() -> None:
    assert [n for n in (199, 200) if enough(n, 0.95)] == [200]
    assert [n for n in (999, 1000) if enough(n, 0.99)] == [1000]


def test_a_percentile_that_the_rows_cannot_carry_is_not_printed() -> None:
    summary = Summary.of(np.arange(1.0, 1000.0))
    assert summary.p99.text() == "n too small"
    assert summary.p99.value is None
    assert summary.p95.text() == "949 ms"
    assert Summary.of(np.arange(1000.0)).p99.value is not None


def test_the_median_of_a_few_has_an_open_interval() -> None:
    summary = Summary.of(np.array([3.0, 1.0, 2.0]))
    assert summary.p50.value == 2.0
    assert summary.to_json()["p50"] == {"ms": 2.0, "interval": [None, None]}


def test_a_percentile_beyond_what_was_cut_off_is_a_lower_bound() -> None:
    values = np.concatenate((np.linspace(100, 900, 180), np.full(20, 1500.0)))
    censored = values == 1500.0
    summary = Summary.of(values, censored)
    assert summary.p50.value == pytest.approx(np.quantile(values, 0.5))
    assert summary.p95.value is None
    assert summary.p95.text() == ">= 1500 ms (timeout)"
    assert summary.worst.text() == ">= 1500 ms (timeout)"
    assert summary.mean.text().startswith(">= ")
    assert summary.censored == 20


def test_one_that_was_cut_off_early_counts_as_slower_than_every_answer() -> None:
    values, censored = np.array([50.0, 100.0, 110.0, 120.0]), np.array([True, False, False, False])
    assert percentile(values, 0.5, censored).value == 115.0


def test_where_nobody_was_answered_there_is_no_figure() -> None:
    found = percentile(np.full(30, 1500.0), 0.5, np.full(30, True))
    assert found.text() == ">= 1500 ms (timeout)"


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_latency_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        Summary.of(values)
