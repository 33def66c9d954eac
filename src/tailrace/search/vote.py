"""How much the keyword leg may vote, decided for each query from what it found.

A query whose words stand together in one document is answered by words; one that describes what it wants
meets the same words by chance, here and there. Which of the two it is shows in how much of the query the
leg's best document holds. Figures in docs/explanation/search.md. Knows no store.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.search.fuse import Weights
from tailrace.stores.port import FIELDS, KeywordLeg


@dataclass(frozen=True, slots=True)
class VoteRule:
    """The keyword leg's weight: `least` plus the square of the coverage of what is left to `most`."""

    least: float = 0.2
    most: float = 4.0

    def weights(self, leg: KeywordLeg, terms: Sequence[str]) -> Weights:
        """The weights of both legs for one query; the vector leg's is always 1."""
        if not leg.hits:
            return Weights(0.0, 1.0)
        covered = leg.hits[0].coverage(terms, FIELDS)
        return Weights(self.least + (self.most - self.least) * covered**2, 1.0)
