"""Runs the rows of a batch in sub-batches over the threads: what both kinds of model do alike.

A row belongs to an item; items nobody waits for are skipped between sub-batches, and an item whose
row cannot be computed does not take its neighbours with it. Knows nothing of texts or scores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.core.work import Run
from tailrace.models.chunks import plan_chunks
from tailrace.models.errors import Abandoned
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Row:
    """One input of the model, and which item of the batch it is for."""

    item: int
    tokens: Tokens


Outcome = FloatArray | Exception


def run_rows(
    rows: Sequence[Row],
    infer: Callable[[Sequence[Tokens]], FloatArray],
    threads: InferenceThreads,
    run: Run,
    budget: int,
) -> list[Outcome]:
    """One output or exception per row, in order."""
    outcomes: list[Outcome] = [_abandoned()] * len(rows)

    def compute(chunk: list[int]) -> None:
        wanted = {item: run.wanted(item) for item in {rows[index].item for index in chunk}}
        live = [index for index in chunk if wanted[rows[index].item]]
        if not live:
            return
        try:
            results = infer([rows[index].tokens for index in live])
        except Exception as error:  # noqa: BLE001 - it becomes the outcome of the rows it belongs to
            _alone(live, error)
            return
        for index, result in zip(live, results, strict=True):
            outcomes[index] = result

    def _alone(live: list[int], error: Exception) -> None:
        """Find out whose fault it was by running every item's rows by themselves."""
        items = sorted({rows[index].item for index in live})
        if len(items) == 1:
            for index in live:
                outcomes[index] = error
            return
        for item in items:
            compute([index for index in live if rows[index].item == item])

    lengths = [len(row.tokens.ids) for row in rows]
    threads.spread(compute, plan_chunks(lengths, budget, threads.count))
    return outcomes


def _abandoned() -> Abandoned:
    return Abandoned(
        "nobody waited for this item any more; ask again if the answer is still of use"
    )
