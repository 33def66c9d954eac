"""Does batching pay on this machine, and up to which size: measured, kept, read at the next start.

The answer depends on the model and on the machine, so it is kept under both. Runs of different sizes
are measured in turn, again and again, so that a busy moment hits them all alike.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import onnxruntime

from tailrace.models.cache import cache_root
from tailrace.models.cores import usable_cores
from tailrace.models.port import Progress
from tailrace.models.probe import stretched
from tailrace.models.tokens import Tokens

TOKENS_DEFAULT = 256.0
"""The most padded tokens in one run where nothing was measured."""
LENGTHS = (16, 32, 64, 128)
BUDGETS = (16, 32, 64, 128, 256, 512, 1024)
PAYS = 0.05
"""A larger run must be worth this share of a token's time, or it only makes others wait."""


@dataclass(frozen=True, slots=True)
class Point:
    """One size of run: inputs of `length` tokens, `items` of them, and what a token costs."""

    length: int
    items: int
    us_per_token: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found."""

    model: str
    machine: str
    tokens_max: float
    """Runs larger than this do not pay."""
    gain: float
    """How much cheaper a token is at that size than alone, for the shortest inputs measured."""
    points: tuple[Point, ...]

    def words(self) -> str:
        """The finding as a sentence or two."""
        if self.gain <= PAYS:
            return (
                f"Batching does not pay here: a token costs the same alone and in company. "
                f"Runs are kept to {self.tokens_max:.0f} padded tokens."
            )
        return (
            f"Batching pays here for short inputs: up to {self.gain:.0%} off a token's time. "
            f"It stops paying at {self.tokens_max:.0f} padded tokens a run."
        )


def calibrate(
    infer: Callable[[Sequence[Tokens]], object],
    sample: Tokens,
    name: str,
    max_tokens: int,
    progress: Progress,
    rounds: int = 7,
) -> Calibration:
    """Measure runs of all sizes in turn, `rounds` times."""
    sizes = [
        (length, budget // length)
        for length in LENGTHS
        for budget in BUDGETS
        if length <= max_tokens and budget >= length
    ]
    batches = {size: [stretched(sample, size[0])] * size[1] for size in sizes}
    took: dict[tuple[int, int], list[float]] = {size: [] for size in sizes}
    for number in range(rounds + 1):
        for done, size in enumerate(sizes):
            began = time.thread_time()
            infer(batches[size])
            # The first round only touches memory.
            if number:
                took[size].append(time.thread_time() - began)
            progress("measuring runs", (number * len(sizes) + done) / ((rounds + 1) * len(sizes)))
    points = tuple(
        Point(length, items, median(took[length, items]) / (length * items) * 1e6)
        for length, items in sizes
    )
    tokens_max, gain = best_budget(points)
    return Calibration(name, machine_fingerprint(), tokens_max, gain, points)


def best_budget(points: Sequence[Point]) -> tuple[float, float]:
    """The smallest budget within `PAYS` of the cheapest tokens over all lengths; and its gain."""
    lengths = sorted({point.length for point in points})
    budgets = sorted({point.length * point.items for point in points})
    costs = []
    for budget in budgets:
        # A length that does not fit twice into the budget runs alone.
        total = 0.0
        for length in lengths:
            within = [p for p in points if p.length == length and length * p.items <= budget]
            alone = [p for p in points if p.length == length and p.items == 1]
            largest = max(within or alone, key=lambda point: point.items)
            total += largest.us_per_token / alone[0].us_per_token
        costs.append(total / len(lengths))
    most = next(at for at, cost in enumerate(costs) if cost <= min(costs) * (1.0 + PAYS / 2))
    shortest = [p for p in points if p.length == lengths[0]]
    company = [p for p in shortest if p.length * p.items <= budgets[most]] or shortest[:1]
    gain = 1.0 - company[-1].us_per_token / shortest[0].us_per_token
    return float(budgets[most]), gain


def machine_fingerprint() -> str:
    """What a measurement depends on beside the model: processor, cores, runtime."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    parts = (names[:1], platform.machine(), usable_cores(), onnxruntime.__version__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _place(cache_dir: Path | None, model: str) -> Path:
    root = cache_dir or cache_root()
    return root / "calibration" / f"{model}-{machine_fingerprint()}.json"


def keep(found: Calibration, cache_dir: Path | None) -> Path:
    """Write a finding where the next start looks for it."""
    path = _place(cache_dir, found.model)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
    return path


def kept(model: str, cache_dir: Path | None) -> Calibration | None:
    """The finding for this model on this machine, where there is a readable one."""
    try:
        tree = json.loads(_place(cache_dir, model).read_text(encoding="utf-8"))
        points = tuple(Point(**point) for point in tree.pop("points"))
        found = Calibration(**tree, points=points)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if found.tokens_max >= 1 else None
