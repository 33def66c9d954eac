"""How often the verdict "moved from X to Y" is right: `make bench-moved`, some two minutes.

Seeded pairs of runs of independent rows whose truth is known: the essay's shift, a smaller one, no change,
and no change where two parts are nearly equal. The table says how many rows a firm verdict takes.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from figures import Figure, keep
from machine import fingerprint

from tailrace.latency.moved import moved

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from drawn import GENERATE_BEFORE, QUEUE_AFTER, rows  # the tests' own essay

Means = Mapping[str, float]

SIZES = (10, 38, 100)
PLANNED = 100
"""Rows that the promise is for."""
POWER_MIN, FALSE_MAX = 0.90, 0.01


@dataclass(frozen=True, slots=True)
class Truth:
    """Two sets of parts, and whether another one leads in the second."""

    name: str
    before: Means
    after: Means
    moves: str | None
    """"X to Y" where the leader changes."""


TRUTHS = (
    Truth("the essay's shift", GENERATE_BEFORE, QUEUE_AFTER, "generate to net"),
    Truth(
        "a smaller move",
        {"net": 275.0, "queue": 167.0, "generate": 60.0},
        {"net": 275.0, "queue": 420.0, "generate": 60.0},
        "net to queue",
    ),
    Truth("no change, a clear leader", GENERATE_BEFORE, GENERATE_BEFORE, None),
    Truth("no change, as the essay ends", QUEUE_AFTER, QUEUE_AFTER, None),
    Truth(
        "no change, nearly a tie",
        {"net": 275.0, "queue": 265.0, "generate": 60.0},
        {"net": 275.0, "queue": 265.0, "generate": 60.0},
        None,
    ),
)


def verdicts(truth: Truth, n: int, tries: int) -> Counter[str]:
    """What was said of so many pairs of runs; no two runs share a seed."""
    told: Counter[str] = Counter()
    for number in range(tries):
        found = moved(
            rows(n, truth.before, 2 * number),
            rows(n, truth.after, 2 * number + 1),
            seed=number,
        )
        named = f"{found.before} to {found.after}"
        told[f"moved from {named}" if found.kind == "moved" else found.kind] += 1
    return told


def figure(truth: Truth, n: int, tries: int) -> Figure:
    """One line of the table."""
    told = verdicts(truth, n, tries)
    moves = sum(count for words, count in told.items() if words.startswith("moved"))
    said = ", ".join(f"{words} {count}" for words, count in told.most_common())
    numbers = {"n": n, "tries": tries, "told": dict(told)}
    name = f"{truth.name}, n = {n}"
    if truth.moves is None:
        seen = f"{moves / tries:.1%} false alarms ({said})"
        reached = moves <= FALSE_MAX * tries
        return Figure(name, f"<= {FALSE_MAX:.0%} false alarms", seen, reached, numbers)
    right = told[f"moved from {truth.moves}"]
    wrong = moves - right
    seen = f"{right / tries:.1%} found ({said})"
    if n < PLANNED or truth is not TRUTHS[0]:
        return Figure(name, "none named wrong", seen, wrong == 0, numbers)
    return Figure(name, f">= {POWER_MIN:.0%} found", seen, right >= POWER_MIN * tries, numbers)


def main() -> int:
    """Exit code 1 where a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=300)
    tries = parser.parse_args().tries
    machine = fingerprint()
    found = []
    for truth, n in product(TRUTHS, SIZES):
        found.append(figure(truth, n, tries))
        print(f"{found[-1].name}: {found[-1].seen}", flush=True)
    title = 'The verdict "moved from X to Y" where the truth is known'
    keep("moved", title, found, machine, f"make bench-moved ({tries} pairs a line)")
    return 0 if all(one.reached for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
