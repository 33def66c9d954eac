"""How much the keyword leg may vote for each of its documents, decided by what it found there.

A document that holds the words of a query together is meant by them; one that meets a few of them met them
by chance. So each document's vote grows with the share of the query that it holds: all books of an author
gain alike, and a wish in many words is left to the vectors. What counts is what stands within the words as
they were written: pairs across a space help to find, but nobody meant them. Figures in
docs/explanation/search.md. Knows no store.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.search.fuse import Votes
from tailrace.stores.port import Analyzer, KeywordLeg


def asked_terms(analyzer: Analyzer, text: str, looked_up: Sequence[str]) -> list[str]:
    """Those of the terms looked up that lie within the words of the query."""
    within = {term for word in text.split() for term in analyzer.query_terms(word)}
    return [term for term in looked_up if term in within]


@dataclass(frozen=True, slots=True)
class VoteRule:
    """A document's vote: `least` plus the square of what it holds of the query, of what is left to `most`."""

    least: float = 0.2
    most: float = 2.0

    def votes(self, leg: KeywordLeg, asked: Sequence[str]) -> Votes:
        """The weight of every hit of the keyword leg; the vector leg's is always 1.

        Hits too far down for the store to tell what they hold (MATCHED_MAX) have the least.
        """
        left = self.most - self.least
        meant = frozenset(asked)
        held = (hit.coverage(meant) for hit in leg.hits)
        return Votes(tuple(self.least + left * share**2 for share in held), 1.0)
