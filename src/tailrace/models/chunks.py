"""Cuts a batch into sorted sub-batches of some hundred tokens; pure arithmetic.

A sub-batch that fits the core's second-level cache runs faster per token than one big batch, neighbours
of like length need little padding, and between sub-batches there is time to notice that nobody waits.
"""

from collections.abc import Sequence

CHUNK_TOKENS = 160
"""Padded tokens in one sub-batch; measured flat from about 60 to 240."""


def plan_chunks(
    lengths: Sequence[int], budget: int = CHUNK_TOKENS, ways: int = 1
) -> list[list[int]]:
    """Indices of the items, in sub-batches of similar length, the heaviest first.

    Each sub-batch holds at most `budget` padded tokens, or one item. With several `ways` to run them
    on, their number is made a multiple of that where there are items enough, so that all end together.
    """
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    chunks = _cut(order, lengths, budget)
    if ways > 1 and len(chunks) % ways and len(lengths) >= ways:
        chunks = _even_out(order, lengths, budget, len(chunks) + ways - len(chunks) % ways)
    chunks.reverse()
    return chunks


def _cut(order: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    chunks: list[list[int]] = []
    for index in order:
        # Lengths only grow, so the newcomer's length is the padded length.
        if chunks and (len(chunks[-1]) + 1) * lengths[index] <= budget:
            chunks[-1].append(index)
        else:
            chunks.append([index])
    return chunks


def _even_out(
    order: Sequence[int], lengths: Sequence[int], budget: int, wanted: int
) -> list[list[int]]:
    """Cut at equal shares of the tokens; `budget` still holds, so there may be more than `wanted`."""
    share = sum(lengths) / wanted
    chunks: list[list[int]] = []
    taken = 0.0
    for index in order:
        full = bool(chunks) and (len(chunks[-1]) + 1) * lengths[index] > budget
        if not chunks or full or taken >= share * len(chunks):
            chunks.append([index])
        else:
            chunks[-1].append(index)
        taken += lengths[index]
    return chunks
