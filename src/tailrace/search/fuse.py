"""Two ranked lists into one: weighted reciprocal rank fusion, with everything fixed that decides.

Ranks start at 1; a list that does not hold a document adds nothing; ties stand in the order of the best
single rank, then of the ids. Knows no text and no store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

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


class Ranking(Sequence[Fused]):
    """A fused list, best first. A line is made when it is looked at: of hundreds a page shows ten."""

    def __init__(
        self,
        lines: Sequence[tuple[float, int, str]],
        words: Mapping[str, tuple[Hit, float]],
        near: Mapping[str, Hit],
    ) -> None:
        """`lines` hold what they are sorted by: the score below nought, the best single rank, the id."""
        self._lines = lines
        self._words = words
        self._near = near

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> Fused: ...
    @overload
    def __getitem__(self, at: slice) -> list[Fused]: ...
    def __getitem__(self, at: int | slice) -> Fused | list[Fused]:
        if isinstance(at, slice):
            return [self._line(place) for place in range(*at.indices(len(self)))]
        return self._line(range(len(self))[at])

    def _line(self, place: int) -> Fused:
        negative, _, id_ = self._lines[place]
        word, vote = self._words.get(id_, (None, 0.0))
        return Fused(id_, place + 1, -negative, word, vote, self._near.get(id_))


def fuse(
    keyword: Sequence[Hit],
    vector: Sequence[Hit],
    votes: Votes,
    *,
    k: float,
    most: int | None = None,
) -> Ranking:
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
    return Ranking(lines[:most], words, near)
