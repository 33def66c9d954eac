"""The second opinion: the formula, what is remembered, what is refused."""

import numpy as np
import pytest

from tailrace.models.errors import ModelUnavailable
from tailrace.models.fusion import Fusion, read_fusion


def arrays(size: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "mean_review": rng.normal(size=size).astype(np.float32),
        "mean_topic": rng.normal(size=size).astype(np.float32),
        "W": rng.normal(size=(size, size)).astype(np.float32),
        "scale": np.float32(4),
        "bias": np.float32(-0.5),
        "weight": np.float32(0.7),
        "std_ce": np.float32(2),
        "std_bi": np.float32(3),
        "platt": np.array([1.5, -0.25], np.float32),
    }


def test_the_mix_follows_the_formula() -> None:
    given = arrays()
    topics = {"a": np.eye(6, dtype=np.float32)[0], "b": np.eye(6, dtype=np.float32)[3]}
    review = np.eye(6, dtype=np.float32)[1]
    logits = np.array([0.3, -1.2], np.float32)
    mixed = Fusion(read_fusion(given), topics.__getitem__).mix(logits, review, ["a", "b"])
    for place, name in enumerate("ab"):
        left = review - given["mean_review"]
        right = topics[name] - given["mean_topic"]
        form = (left / np.linalg.norm(left)) @ given["W"] @ (right / np.linalg.norm(right))
        expected = 1.5 * (0.7 * logits[place] / 2 + 0.3 * (4 * form - 0.5) / 3) - 0.25
        assert mixed[place] == pytest.approx(expected, rel=1e-5)


def test_a_label_is_embedded_once() -> None:
    asked: list[str] = []

    def embed(label: str) -> np.ndarray:
        asked.append(label)
        return np.ones(6, np.float32)

    fusion = Fusion(read_fusion(arrays()), embed)
    fusion.prepare(["a", "b"])
    fusion.mix(np.zeros(2, np.float32), np.ones(6, np.float32), ["b", "a"])
    assert asked == ["a", "b"]


def test_a_file_without_an_array_or_with_a_wrong_shape_is_refused() -> None:
    given = arrays()
    del given["platt"]
    given["W"] = given["W"][0]
    with pytest.raises(ModelUnavailable, match=r"W, platt"):
        read_fusion(given)
