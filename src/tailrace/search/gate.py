"""The recall gate: whether a new model finds as well as the one before, by labelled queries.

Both models answer the same queries; what counts is the difference of recall@10, paired by query, with
the interval of a bootstrap over queries. A sample too small to tell is said to be too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tailrace.core.errors import TailraceError
from tailrace.search.hybrid import HybridSearch, Mode, Query
from tailrace.search.quality import Figure, Labelled, differences, figures, scores

METRIC = "recall@10"
LOSS_MAX = 0.02
"""How much recall@10 a new model may lose."""
QUERIES_MIN = 30
"""Labelled queries below which nothing is decided: the resamples of a few say too little."""

Verdict = Literal["pass", "fail", "not decidable"]


class DegradedSearch(TailraceError):
    """A search that was to be judged lacked a leg."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate says, and from what."""

    verdict: Verdict
    why: str
    queries: int
    after: Figure
    before: Figure | None
    difference: Figure | None
    """After minus before; None where the present model was not at hand."""


async def scored(search: HybridSearch, query: Labelled, mode: Mode = "hybrid") -> list[float]:
    """METRICS of one labelled query; raises DegradedSearch for an answer that is less than asked for."""
    answer = await search.search(Query(query.text, mode=mode))
    if answer.degraded:
        raise DegradedSearch(f"a search was degraded: {', '.join(answer.degraded)}")
    return scores([found.fused.id for found in answer.found], query.relevant)


def judge(after: Sequence[Sequence[float]], before: Sequence[Sequence[float]] | None) -> Gate:
    """The verdict over tables of `scores`, a row per query, in the same order.

    pass: the whole 95 % interval of the difference lies above -LOSS_MAX. fail: the whole of it lies
    below. Anything else is not decidable, and so are fewer than QUERIES_MIN queries.
    """
    count, new = len(after), figures(after)[METRIC]
    if before is None:
        why = "the model in use is not at hand to compare with"
        return Gate("not decidable", why, count, new, None, None)
    old, change = figures(before)[METRIC], differences(after, before)[METRIC]
    verdict: Verdict = "not decidable"
    between = f"{METRIC} changes by {change.mean:+.3f} ({change.low:+.3f}..{change.high:+.3f})"
    if count < QUERIES_MIN:
        why = f"{count} labelled queries, {QUERIES_MIN} at least; {between}"
    elif change.low >= -LOSS_MAX:
        verdict, why = "pass", f"{between}, a loss of {LOSS_MAX} is out of the question"
    elif change.high < -LOSS_MAX:
        verdict, why = "fail", f"{between}, more than {LOSS_MAX} is lost"
    else:
        why = f"{between}, the interval holds -{LOSS_MAX}; more queries would narrow it"
    return Gate(verdict, why, count, new, old, change)
