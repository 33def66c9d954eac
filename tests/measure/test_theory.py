"""The replay against queueing theory, within three percent; seeded, in virtual time."""

import numpy as np
import pytest

from tailrace.simulate.plan import LanePlan
from tailrace.simulate.replay import replay
from tailrace.simulate.theory import erlang_c, erlang_c_wait_s, pollaczek_khinchine_s
from tailrace.simulate.visits import Visit

SEED = 20261201


def waits(arrivals, services, plan):
    pairs = zip(arrivals, services, strict=True)
    visits = [Visit(float(at), weight=float(seconds)) for at, seconds in pairs]
    return np.array([stay.queue_s for stay in replay(visits, plan, sum).stays])


@pytest.mark.parametrize("use", [0.5, 0.75])
def test_the_mean_wait_is_pollaczek_and_khinchines_within_three_percent(use):
    """Antithetic draws, so that a few thousand requests are enough: the mean over many seeded replays."""
    rng = np.random.default_rng(SEED)
    n, found, theory = 4000, [], []
    for _ in range(4):
        u, v = rng.random((2, n))
        for gaps, sizes in ((u, v), (1 - u, 1 - v)):
            arrivals = np.cumsum(-np.log(gaps) / use)
            services = np.where(sizes < 0.5, 0.5, 1.5)
            found.append(waits(arrivals, services, LanePlan()).mean())
            rate = n / arrivals[-1]
            theory.append(pollaczek_khinchine_s(rate, services.mean(), (services**2).mean()))
    assert np.mean(found) == pytest.approx(np.mean(theory), rel=0.03)


def test_two_slots_wait_as_erlang_says_within_three_percent():
    rng = np.random.default_rng(SEED)
    n, rate, mean = 4000, 1.4, 1.0
    found, share = [], []
    for _ in range(4):
        u, v = rng.random((2, n))
        for gaps, sizes in ((u, v), (1 - u, 1 - v)):
            arrivals = np.cumsum(-np.log(gaps) / rate)
            services = -np.log(sizes) * mean
            got = waits(arrivals, services, LanePlan(slots=2))
            found.append(got.mean())
            share.append((got > 1e-9).mean())
    assert np.mean(found) == pytest.approx(erlang_c_wait_s(rate, mean, 2), rel=0.03)
    assert np.mean(share) == pytest.approx(erlang_c(rate, mean, 2), rel=0.03)
