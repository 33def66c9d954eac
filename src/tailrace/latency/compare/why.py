"""Why a share moved: by its own change, or because the rest changed around it.

A part may weigh more without having become longer. Its share is its mean over the whole's, so the logarithm
of the share's growth is the part's own growth less the whole's: both are said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.latency.bootstrap import percentile_interval
from tailrace.latency.compare.alike import source_of
from tailrace.latency.compare.pairs import Pairing
from tailrace.latency.interval import Change
from tailrace.latency.quantiles import ms_text
from tailrace.latency.shares import of_whole

MOSTLY = 0.8
"""From this share of a share's growth on, it is said to come from one side only."""


@dataclass(frozen=True, slots=True)
class PartChange:
    """One part in both runs: its mean and its share of the mean, with 95 % intervals of the changes."""

    name: str
    source_before: str
    source_after: str
    before_ms: float
    after_ms: float
    change: Change
    before_share: float
    after_share: float
    share_change: Change

    @property
    def ratio(self) -> float | None:
        """How many times as long it takes; None where it took no time before."""
        return self.after_ms / self.before_ms if self.before_ms > 0 else None

    def to_json(self) -> dict[str, object]:
        """Every figure by name."""
        return {
            "source_before": self.source_before,
            "source_after": self.source_after,
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
            "change_ms": self.change.to_json(),
            "ratio": self.ratio,
            "before_share": self.before_share,
            "after_share": self.after_share,
            "share_change": self.share_change.to_json(),
        }


def part_changes(pairs: Pairing) -> tuple[PartChange, ...]:
    """Of every part that either run has, in the order of reports."""
    before, after = pairs.before, pairs.after
    names = before.names + tuple(name for name in after.names if name not in before.names)
    one, other = before.on(names), after.on(names)
    means = (one.mean(axis=0), other.mean(axis=0))
    resampled = (pairs.first.means(one), pairs.second.means(other))
    shares = [of_whole(mean) for mean in means]
    moves = of_whole(resampled[1]) - of_whole(resampled[0])
    changes = resampled[1] - resampled[0]
    return tuple(
        PartChange(
            name=name,
            source_before=source_of(before, name),
            source_after=source_of(after, name),
            before_ms=float(means[0][column]),
            after_ms=float(means[1][column]),
            change=_change(means[1][column] - means[0][column], changes[:, column]),
            before_share=float(shares[0][column]),
            after_share=float(shares[1][column]),
            share_change=_change(shares[1][column] - shares[0][column], moves[:, column]),
        )
        for column, name in enumerate(names)
    )


def _change(
    value: np.float64, resampled: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> Change:
    return Change(float(value), percentile_interval(resampled))


def why(parts: Sequence[PartChange], leader: str) -> str:
    """One sentence on why the share of the part that leads now is what it is."""
    part = next(part for part in parts if part.name == leader)
    if not part.share_change.sure:
        return f"the share of {leader} did not change beyond noise"
    whole = [sum(getattr(each, name) for each in parts) for name in ("before_ms", "after_ms")]
    if part.before_ms <= 0 or part.after_ms <= 0 or min(whole) <= 0:
        return f"{_told(part)}; there is nothing to relate that to"
    own, around = math.log(part.after_ms / part.before_ms), -math.log(whole[1] / whole[0])
    total = own + around
    share = f"the share of {leader} went from {part.before_share:.0%} to {part.after_share:.0%}"
    rest = _most_changed([each for each in parts if each is not part])
    if own / total >= MOSTLY:
        return f"{share} because {_told(part)}"
    if around / total >= MOSTLY:
        return (
            f"{share} because the whole {_went(whole[1] - whole[0])} by {abs(whole[1] / whole[0] - 1):.0%}"
            f" ({rest}), not by its own change ({_told(part)})"
        )
    return (
        f"{share}: x{math.exp(own):.2g} by its own change ({_told(part)}) and "
        f"x{math.exp(around):.2g} by the whole's ({rest})"
    )


def _most_changed(parts: Sequence[PartChange]) -> str:
    sure = [part for part in parts if part.change.sure] or list(parts)
    if not sure:
        return "there is no other part"
    return _told(max(sure, key=lambda part: abs(part.change.value)))


def _told(part: PartChange) -> str:
    change = part.change.value
    pair = f"{ms_text(part.before_ms)} to {ms_text(part.after_ms)}"
    if not part.change.sure:
        return f"{part.name} {pair}, no change beyond noise"
    ratio = f", {(part.ratio - 1) * 100:+.0f} %" if part.ratio is not None else ""
    return f"{part.name} {_went(change)} from {pair}{ratio}"


def _went(change: float) -> str:
    return "rose" if change > 0 else "fell"
