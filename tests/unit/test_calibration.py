"""Whether batching pays: the rule over measured points, and what is kept for the next start."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tailrace.models.calibration import (
    Calibration,
    Point,
    best_budget,
    calibrate,
    keep,
    kept,
)
from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

BUDGETS = (16, 32, 64, 128, 256, 512, 1024)


def points(cost: dict[int, float], length: int = 16) -> list[Point]:
    return [Point(length, budget // length, us) for budget, us in cost.items()]


def test_where_company_makes_no_token_cheaper_runs_stay_as_small_as_they_can() -> None:
    tokens_max, gain = best_budget(points(dict.fromkeys(BUDGETS, 200.0)))
    assert tokens_max == 16
    assert gain == 0


def test_runs_grow_until_a_token_is_about_as_cheap_as_it_gets() -> None:
    cost = {16: 400.0, 32: 300.0, 64: 250.0, 128: 202.0, 256: 200.0, 512: 220.0, 1024: 260.0}
    tokens_max, gain = best_budget(points(cost))
    assert tokens_max == 128
    assert gain == pytest.approx(0.495)


def test_a_length_that_fills_a_run_alone_does_not_speak_against_shared_runs_of_shorter_ones() -> (
    None
):
    short = points({16: 400.0, 32: 250.0, 64: 200.0}, 16)
    long = points({64: 200.0, 128: 240.0, 256: 300.0}, 64)
    assert best_budget(short + long)[0] == 64


def test_the_finding_is_said_in_words() -> None:
    pays = Calibration("m", "c", 128.0, 0.3, ())
    assert "30% off" in pays.words()
    assert "128 padded tokens" in pays.words()
    assert "does not pay" in Calibration("m", "c", 16.0, 0.01, ()).words()


def test_what_was_found_is_read_again_for_the_same_model_only(tmp_path: Path) -> None:
    def infer(batch: Sequence[Tokens]) -> FloatArray:
        return np.zeros((len(batch), 1), np.float32)

    told: list[float] = []
    sample = Tokens([0, 5, 5, 2], [0] * 4)
    found = calibrate(infer, sample, "model-a", 64, lambda _, share: told.append(share), rounds=1)
    assert max(point.length for point in found.points) == 64
    assert told == sorted(told)
    keep(found, tmp_path)
    assert kept("model-a", tmp_path) == found
    assert kept("model-b", tmp_path) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"points": [{}]}', "\xff"])
def test_a_damaged_finding_counts_as_none(tmp_path: Path, content: str) -> None:
    found = Calibration("model-a", "here", 128.0, 0.2, ())
    keep(found, tmp_path).write_text(content, encoding="latin-1")
    assert kept("model-a", tmp_path) is None
