"""Rows of made-up requests whose parts are drawn from known distributions."""

from collections.abc import Mapping

import numpy as np

from tailrace.wire.record import CLIENT_PARTS, Part, Row

GENERATE_BEFORE = {"net": 275.0, "queue": 120.0, "generate": 900.0}
"""The essay's first measurement: generation led."""
QUEUE_AFTER = {"net": 275.0, "queue": 167.0, "generate": 60.0}
"""Its second: generation was a tenth, distance and queue the rest."""
SPREAD = {"net": 0.1, "queue": 1.0, "generate": 0.4}
"""Standard deviations of the logarithms: a path varies little, a shared queue a lot."""


def rows(
    n: int,
    means: Mapping[str, float],
    seed: int,
    *,
    spread: Mapping[str, float] | float = SPREAD,
    prompts: bool = False,
) -> list[Row]:
    """N independent requests, one a second, each part lognormal with this mean in milliseconds."""
    random = np.random.default_rng(seed)
    columns = {}
    for name in sorted(means, key=CLIENT_PARTS.index):
        sigma = spread if isinstance(spread, float) else spread[name]
        columns[name] = random.lognormal(np.log(means[name]) - sigma**2 / 2, sigma, n)
    return [
        row(
            {name: float(column[index]) for name, column in columns.items()},
            at_s=float(index),
            prompt=f"p{index}" if prompts else None,
        )
        for index in range(n)
    ]


def row(ms: Mapping[str, float], **known: object) -> Row:
    """One request of these parts."""
    parts = {name: Part(value, "measured") for name, value in ms.items()}
    return Row(wall_ms=sum(ms.values()), parts=parts, status=200, **known)  # type: ignore[arg-type]
