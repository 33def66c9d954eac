"""The optional second opinion of a cross-encoder: a bilinear form over the embedder's vectors.

Both opinions become one logit, then one calibrated probability. Knows arrays and an embedder, nothing
of pairs or sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray

_REMEMBERED = 4096
_SHAPES = {"mean_review": 1, "mean_topic": 1, "W": 2, "platt": 1} | dict.fromkeys(
    ("scale", "bias", "weight", "std_ce", "std_bi"), 0
)


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """What training found."""

    mean_review: FloatArray
    mean_topic: FloatArray
    matrix: FloatArray
    scale: float
    bias: float
    weight: float
    """Share of the cross-encoder's opinion; the rest is the bilinear form's."""
    std_ce: float
    std_bi: float
    platt: tuple[float, float]


def read_fusion(arrays: Mapping[str, npt.NDArray[np.floating]]) -> FusionWeights:
    """Check and read the arrays of a fusion file."""
    wrong = [
        name
        for name, dimensions in _SHAPES.items()
        if name not in arrays or np.ndim(arrays[name]) != dimensions
    ]
    if wrong:
        raise ModelUnavailable(f"the fusion file lacks or mis-shapes {', '.join(wrong)}")
    found = {name: np.asarray(arrays[name], np.float32) for name in _SHAPES}
    scalars = {name: float(found[name]) for name in ("scale", "bias", "weight", "std_ce", "std_bi")}
    return FusionWeights(
        mean_review=found["mean_review"],
        mean_topic=found["mean_topic"],
        matrix=found["W"],
        platt=(float(found["platt"][0]), float(found["platt"][1])),
        **scalars,
    )


class Fusion:
    """Mixes pair logits with the bilinear form; label vectors are computed once and remembered."""

    def __init__(self, weights: FusionWeights, embed_label: Callable[[str], FloatArray]) -> None:
        self._weights = weights
        self._embed_label = embed_label
        self._label = lru_cache(maxsize=_REMEMBERED)(self._centred_label)

    def mix(self, logits: FloatArray, text: FloatArray, labels: Sequence[str]) -> FloatArray:
        """Fused logits of one text, from its pair logits and its own vector."""
        found = self._weights
        left = _unit(text - found.mean_review) @ found.matrix
        right = np.array([self._label(label) for label in labels], np.float32).reshape(-1, left.size)
        bilinear = found.scale * (right @ left) + found.bias
        mixed = found.weight * logits / found.std_ce + (1 - found.weight) * bilinear / found.std_bi
        return np.asarray(found.platt[0] * mixed + found.platt[1], np.float32)

    def prepare(self, labels: Sequence[str]) -> None:
        """Compute the vectors of labels that are not remembered yet."""
        for label in labels:
            self._label(label)

    def _centred_label(self, label: str) -> FloatArray:
        return _unit(self._embed_label(label) - self._weights.mean_topic)


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)
