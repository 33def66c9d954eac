"""How long a model thought where it does not show its thoughts: by tokens, and marked as an estimate.

Also whether a switch was heeded. Knows counts and gaps, no provider.
"""

import itertools
from collections.abc import Mapping, Sequence

from tailrace.latency.partition import Figure

GAPS_MIN = 8
"""Fewer gaps between visible pieces say too little of a token's time."""
LOW, HIGH = 0.1, 0.9
"""The gaps' quantiles that bound the estimate."""
NOTE = "hidden reasoning, by its tokens"


def hidden_thinking(
    reasoning_tokens: int, moments: Sequence[int], visible_tokens: int, room_ns: int
) -> Figure | None:
    """The time of thoughts that no stream showed, inside a wait of `room_ns`; None where it cannot be told.

    A hidden token is taken to cost what a visible one does. `moments` are those of the visible pieces; the
    first one's tokens came before its moment and do not count.
    """
    gaps = sorted(b - a for a, b in itertools.pairwise(moments))
    if len(gaps) < GAPS_MIN or reasoning_tokens <= 0 or visible_tokens <= 1:
        return None
    pieces = len(moments)
    per_piece = max(1.0, visible_tokens / pieces)
    mean = (moments[-1] - moments[0]) / (len(gaps) * per_piece)
    low, high = (gaps[int(q * (len(gaps) - 1))] / per_piece for q in (LOW, HIGH))
    ns, least, most = (
        min(room_ns, round(reasoning_tokens * each))
        for each in (mean, min(low, mean), max(high, mean))
    )
    return Figure(ns, "estimated", least, most, NOTE)


def split_generate(inside: Mapping[str, Figure], thought_share: float) -> dict[str, Figure]:
    """The declared time of generation divided into thoughts and visible text by their tokens."""
    parts = dict(inside)
    whole = parts.get("generate")
    if whole is None or not 0 < thought_share <= 1:
        return parts
    think = round(whole.ns * thought_share)
    parts["think"] = Figure(think, "estimated", 0, whole.ns, NOTE)
    parts["generate"] = Figure(
        whole.ns - think, "estimated", 0, whole.ns, "the rest, by its tokens"
    )
    return parts
