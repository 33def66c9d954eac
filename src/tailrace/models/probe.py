"""Measures at start what no file says: whether neighbours change an answer; and warms a model up.

Works on token ids and one function that runs them; knows nothing of texts or sessions.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

Infer = Callable[[Sequence[Tokens]], FloatArray]

TOLERANCE = 1e-4
"""Largest change, relative to the answer's size, that still counts as none."""
PROBE_TEXTS = (
    "짧은 글",
    "good coffee, friendly staff 👍",
    "직원이 정말 친절했지만 대기가 너무 길고 주차할 곳이 없어요. 맛은 최고였습니다.",
    "12,000원 ... ?!",
)
"""Of different lengths and kinds, so that a shared scale would show."""
_WARM_LENGTHS = (8, 32, 128)


def invariance(infer: Infer, inputs: Sequence[Tokens]) -> float:
    """Largest relative change of any input's answer between alone and beside all the others."""
    together = infer(inputs).astype(np.float64)
    alone = np.stack([infer([tokens])[0] for tokens in inputs]).astype(np.float64)
    size = np.maximum(np.abs(alone).reshape(len(inputs), -1).max(axis=1), 1.0)
    change = np.abs(together - alone).reshape(len(inputs), -1).max(axis=1)
    return float((change / size).max())


def warm_up(infer: Infer, sample: Tokens, max_tokens: int, budget: int) -> None:
    """Touch the memory once: some lengths alone, and one full sub-batch."""
    lengths = [length for length in _WARM_LENGTHS if length <= max_tokens]
    for length in lengths:
        infer([stretched(sample, length)])
    infer([stretched(sample, 32)] * max(1, budget // 32))


def stretched(sample: Tokens, length: int) -> Tokens:
    """The sample with its middle repeated, or cut, to some length; both segments are kept."""
    middle = len(sample.ids) // 2
    fill = max(0, length - len(sample.ids))
    ids = [*sample.ids[:middle], *([sample.ids[middle]] * fill), *sample.ids[middle:]]
    types = [*sample.types[:middle], *([sample.types[middle]] * fill), *sample.types[middle:]]
    return Tokens(ids, types)
