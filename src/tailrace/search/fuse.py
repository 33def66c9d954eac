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
class Votes:
    """How much each leg counts in one query."""

    keyword: Sequence[float]
    """For each of its hits, in their order."""
    vector: float
    """For all of its hits alike."""


def equal_votes(keyword: Sequence[Hit]) -> Votes:
    """Both legs count the same: reciprocal rank fusion as it was published."""
    return Votes((1.0,) * len(keyword), 1.0)


@dataclass(frozen=True, slots=True)
class Reread:
    """What the rerank stage said of a document, and where it stood before."""

    score: float
    before: int


@dataclass(frozen=True, slots=True)
class Fused:
    """One document of the fused list, with what each leg said of it."""

    id: str
    rank: int
    score: float
    keyword: Hit | None
    vote: float
    """The keyword leg's weight for it; 0 where it has no hit there."""
    vector: Hit | None
    reread: Reread | None = None


def fuse(
    keyword: Sequence[Hit],
    vector: Sequence[Hit],
    votes: Votes,
    *,
    k: float,
    most: int | None = None,
) -> list[Fused]:
    """The best `most` documents of both lists, or all of them, best first.

    The score is the sum of weight / (k + rank): Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    words = {hit.id: (hit, vote) for hit, vote in zip(keyword, votes.keyword, strict=True)}
    near: Mapping[str, Hit] = {hit.id: hit for hit in vector}
    lines = []
    for hit, vote in words.values():
        score, best = vote / (k + hit.rank), hit.rank
        if (other := near.get(hit.id)) is not None:
            score += votes.vector / (k + other.rank)
            best = min(best, other.rank)
        lines.append((-score, best, hit.id))
    lines += [
        (-votes.vector / (k + hit.rank), hit.rank, hit.id) for hit in vector if hit.id not in words
    ]
    lines.sort()
    made = []
    for rank, (negative, _, id_) in enumerate(lines[:most], 1):
        word, vote = words.get(id_, (None, 0.0))
        made.append(Fused(id_, rank, -negative, word, vote, near.get(id_)))
    return made
