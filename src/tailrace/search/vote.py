"""How much the keyword leg may vote, decided for each query from what it found.

A query whose words are a name (of a work, of a person) is answered by words; one that describes what it
wants meets the same words by chance. Which of the two it is shows in how much of the query the best
documents hold in their names. Knows no store.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.search.fuse import Weights
from tailrace.stores.port import KeywordLeg


@dataclass(frozen=True, slots=True)
class VoteRule:
    """The keyword leg's weight: `least`, or `full` where a name covers at least `covered` of the query."""

    least: float = 0.2
    full: float = 1.0
    covered: float = 0.8

    def weights(self, leg: KeywordLeg, terms: Sequence[str]) -> Weights:
        """The weights of both legs for one query."""
        top = leg.hits[0].coverage(terms) if leg.hits else 0.0
        return Weights(self.full if top >= self.covered else self.least, 1.0)
