"""Two ranked lists into one: weighted reciprocal rank fusion, with everything fixed that decides.

Ranks start at 1; a list that does not hold a document adds nothing; ties stand in the order of the best
single rank, then of the ids. Knows no text and no store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.stores.port import Hit

RANK_BASE = 1
TIES = "best single rank, then id"


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each leg counts in one query."""

    keyword: float
    vector: float


@dataclass(frozen=True, slots=True)
class Fused:
    """One document of the fused list, with what each leg said of it."""

    id: str
    rank: int
    score: float
    keyword: Hit | None
    vector: Hit | None


def fuse(
    keyword: Sequence[Hit], vector: Sequence[Hit], weights: Weights, *, k: float
) -> list[Fused]:
    """All documents of both lists, best first.

    The score is the sum of weight / (k + rank): Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    words: Mapping[str, Hit] = {hit.id: hit for hit in keyword}
    near: Mapping[str, Hit] = {hit.id: hit for hit in vector}
    lines = []
    for id_ in words.keys() | near.keys():
        pair = (words.get(id_), near.get(id_))
        score = sum(
            weight / (k + hit.rank)
            for weight, hit in zip((weights.keyword, weights.vector), pair, strict=True)
            if hit is not None
        )
        best = min(hit.rank for hit in pair if hit is not None)
        lines.append((-score, best, id_, pair))
    lines.sort(key=lambda line: line[:3])
    return [
        Fused(id_, rank, -negative, *pair) for rank, (negative, _, id_, pair) in enumerate(lines, 1)
    ]
