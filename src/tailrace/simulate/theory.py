"""What queueing theory says of simple lines, and a vectorised FIFO server: cross-checks of the replay.

No prediction is made from these: they hold for one FIFO line without seats, deadlines or batches.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lindley_waits(arrivals: Floats, services: Floats) -> Floats:
    """Seconds each of one FIFO server's customers waits.

    Lindley's recursion (1952), W[n+1] = max(0, W[n] + S[n] - A[n]), solved as running minimum of its sums.
    """
    steps = services[:-1] - np.diff(arrivals)
    sums = np.concatenate(([0.0], np.cumsum(steps)))
    return np.asarray(sums - np.minimum.accumulate(sums), dtype=np.float64)


def pollaczek_khinchine_s(rate: float, mean_s: float, second_moment: float) -> float:
    """Mean wait of Poisson arrivals at one FIFO server: rate x E[S^2] / 2 (1 - use); inf from use 1 on."""
    use = rate * mean_s
    return rate * second_moment / (2.0 * (1.0 - use)) if use < 1.0 else float("inf")


def erlang_c(rate: float, mean_s: float, servers: int) -> float:
    """The share of Poisson arrivals that wait at exponential servers (Erlang 1917); 1 from use 1 on."""
    load = rate * mean_s
    if load >= servers:
        return 1.0
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / factorial(k) for k in range(servers)) + last)


def erlang_c_wait_s(rate: float, mean_s: float, servers: int) -> float:
    """Mean wait of the same line: C x mean / (servers - load); inf from use 1 on."""
    load = rate * mean_s
    if load >= servers:
        return float("inf")
    return erlang_c(rate, mean_s, servers) * mean_s / (servers - load)
