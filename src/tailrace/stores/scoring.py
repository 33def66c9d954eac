"""BM25 over weighted fields, in the shape that FTS5 computes it, for stores that have none of their own.

freq = sum over fields of weight x occurrences; idf = ln((N - n + 0.5) / (n + 0.5)), at least 1e-6;
score = sum over terms of idf x freq x (k1 + 1) / (freq + k1 x (1 - b + b x length / average length)).
Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); SQLite's fts5_aux.c.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tailrace.stores.port import FIELD_WEIGHTS, FIELDS, Analyzer, Document, KeywordHit

K1 = 1.2
B = 0.75


def idf(documents: int, holding: int) -> float:
    """How much a term says that `holding` of `documents` have."""
    return max(1e-6, math.log((documents - holding + 0.5) / (holding + 0.5)))


def rarest(counts: Mapping[str, int], most: int) -> list[str]:
    """The terms that choose the candidates: the rarest, while documents hold them `most` times in all.

    At least one. What frequent terms would add is small, what they cost grows with the store.
    """
    chosen: list[str] = []
    total = 0
    for term in sorted(counts, key=lambda term: (counts[term], term)):
        total += counts[term]
        if chosen and total > most:
            break
        chosen.append(term)
    return chosen


def field_terms(analyzer: Analyzer, document: Document) -> list[list[str]]:
    """The terms of a document, by field, in the order of FIELDS."""
    texts = document.texts()
    return [analyzer.document_terms(texts[name]) for name in FIELDS]


def frequencies(
    fields: Sequence[Sequence[str]], weights: Mapping[str, float] = FIELD_WEIGHTS
) -> dict[str, float]:
    """How often each term occurs, the fields weighted."""
    total: dict[str, float] = {}
    for name, terms in zip(FIELDS, fields, strict=True):
        for term, times in Counter(terms).items():
            total[term] = total.get(term, 0.0) + weights[name] * times
    return total


def keyword_hits(
    best: Sequence[tuple[int, str, float]], held: Mapping[int, str], terms: Sequence[str]
) -> tuple[KeywordHit, ...]:
    """Hits for rows, ids and scores, best first; `held` gives a row's terms, spaces between and around.

    A document has hundreds of terms and a query ten: these are looked for in the text as it stands.
    """
    marked = [(term, f" {term} ") for term in dict.fromkeys(terms)]
    return tuple(
        KeywordHit(id_, rank, score, _matched(marked, held.get(row)))
        for rank, (row, id_, score) in enumerate(best, 1)
    )


def _matched(marked: Sequence[tuple[str, str]], text: str | None) -> frozenset[str]:
    """The terms that a text holds; none where it was not read."""
    return frozenset(term for term, mark in marked if mark in text) if text else frozenset()
