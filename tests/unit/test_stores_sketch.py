"""The sketch: it may miss little, and what it finds is compared in full."""

import numpy as np

from tailrace.stores.matrix import Matrix, View, scan
from tailrace.stores.sketch import Sketch


def lopsided(count: int, seed: int) -> np.ndarray:
    """Clustered unit vectors that share a large part, as those of real models do."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(50, 64)) + 4 * draw.normal(size=64)
    rows = centres[draw.integers(0, 50, count)] + 0.5 * draw.normal(size=(count, 64))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_finds_nearly_all_that_the_exact_scan_finds_also_after_changes_and_under_a_filter() -> None:
    rows = lopsided(6000, 1)
    matrix = Matrix(64)
    matrix.load(np.arange(5000), rows[:5000])
    matrix.change([7, 8], range(5000, 6000), rows[5000:])
    exact = matrix.view
    view = View(exact.base, exact.tail, exact.rows, exact.alive, Sketch(exact.base))
    for allowed in (None, np.arange(0, 6000, 2)):
        right, _, all_of_them = scan(exact, rows[:50], 10, allowed)
        found, compared, said_all = scan(view, rows[:50], 10, allowed)
        assert all_of_them
        assert not said_all
        assert compared < 50 * 1500
        same = [
            len({c.row for c in a} & {c.row for c in b}) for a, b in zip(right, found, strict=True)
        ]
        assert sum(same) >= 0.98 * 500
        assert not {7, 8} & {c.row for line in found for c in line}
        if allowed is not None:
            assert all(c.row % 2 == 0 for line in found for c in line)
