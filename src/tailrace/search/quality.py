"""How good rankings are, by queries with graded labels: recall, nDCG, MRR, and how sure one can be.

A miss counts 0 and stays in the mean; a query without labels is counted and left out, in the open.
recall@k = hits / min(k, relevant). Knows no store and no model.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path

import numpy as np

from tailrace.core.errors import InputError

DEPTH = 10
"""How far down rankings are looked at."""
RESAMPLES = 2000
"""Drawings of a bootstrap."""
METRICS = ("recall@1", "recall@5", "recall@10", "ndcg@10", "mrr@10")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A query and what is relevant to it, graded: 2 is what was meant, 1 fits."""

    qid: str
    text: str
    kind: str
    relevant: Mapping[str, int]


def read_queries(file: Path) -> list[Labelled]:
    """Queries of a JSONL file: `qid`, `query`, `kind`, `relevant` {id: grade}. Raises InputError."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            relevant = {str(id_): int(grade) for id_, grade in row.get("relevant", {}).items()}
            kind = str(row.get("kind", "all"))
            found.append(Labelled(str(row["qid"]), str(row["query"]), kind, relevant))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{file}, line {number}: {type(error).__name__}: {error}") from error
    return found


def judged_queries(queries: Iterable[Labelled], file: Path) -> list[Labelled]:
    """Those of a file's queries to which something is relevant. Raises InputError where there is none."""
    judged = [query for query in queries if any(grade > 0 for grade in query.relevant.values())]
    if not judged:
        raise InputError(f"{file} has no query with labels")
    return judged


def trec_qrels(queries: Iterable[Labelled]) -> str:
    """The labels as TREC's tools read them."""
    return "".join(
        f"{query.qid} 0 {id_} {grade}\n"
        for query in queries
        for id_, grade in query.relevant.items()
    )


def scores(ranking: Sequence[str], relevant: Mapping[str, int]) -> list[float]:
    """METRICS of one ranking.

    nDCG with gain 2^grade - 1 (Burges et al., ICML 2005); MRR counts from rank 1 and 0 beyond DEPTH.
    """
    wanted = {id_ for id_, grade in relevant.items() if grade > 0}
    hit = [id_ in wanted for id_ in ranking[:DEPTH]]
    recalls = [sum(hit[:k]) / min(k, len(wanted)) for k in (1, 5, 10)]
    first = next((1 / rank for rank, found in enumerate(hit, 1) if found), 0.0)
    ideal = _gain(sorted(relevant.values(), reverse=True))
    gained = _gain([relevant.get(id_, 0) for id_ in ranking[:DEPTH]])
    return [*recalls, gained / ideal, first]


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / log2(place + 2) for place, grade in enumerate(grades[:DEPTH]))


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with the interval that holds it in 95 of 100 resamples of the queries."""

    mean: float
    low: float
    high: float


def figures(table: Sequence[Sequence[float]], seed: int = 1) -> dict[str, Figure]:
    """Each of METRICS over all queries of a table of `scores`."""
    values = np.asarray(table, np.float64)
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5], axis=0)
    means = values.mean(axis=0)
    return {
        name: Figure(float(means[i]), float(low[i]), float(high[i]))
        for i, name in enumerate(METRICS)
    }


def differences(
    table: Sequence[Sequence[float]], base: Sequence[Sequence[float]]
) -> dict[str, Figure]:
    """`table` minus `base`, paired by query: an interval that holds 0 decides nothing."""
    return figures(np.asarray(table) - np.asarray(base))
