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
    for hit in keyword:
        score, best = weights.keyword / (k + hit.rank), hit.rank
        if (other := near.get(hit.id)) is not None:
            score += weights.vector / (k + other.rank)
            best = min(best, other.rank)
        lines.append((-score, best, hit.id))
    lines += [
        (-weights.vector / (k + hit.rank), hit.rank, hit.id)
        for hit in vector
        if hit.id not in words
    ]
    lines.sort()
    return [
        Fused(id_, rank, -negative, words.get(id_), near.get(id_))
        for rank, (negative, _, id_) in enumerate(lines, 1)
    ]
