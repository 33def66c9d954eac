"""Predictions of runs that were not made yet: kept with everything needed to judge them, and judged later.

A prediction is figures with bands over replications; a score sets them beside a real run. Knows rows and
folders, and nothing of how a prediction was come by.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tailrace.latency.runs import Run
from tailrace.latency.runs.summary import figures, steady
from tailrace.latency.sample import BadSample, sample
from tailrace.wire.record import Row

SCHEMA = 1
FOLDER = "predictions"
KEPT_MAX = 1_000
"""Predictions of one root that past errors are taken from."""
QUANTILES = ("p50", "p95", "p99")
TOTALS = ("mean", *QUANTILES, "tail")
LEVEL = 0.95
"""The share of replications within a band."""
NAMED_SHARE = 0.10
"""Parts of a smaller share are not judged."""
TARGETS = {"mean": 0.05, "p50": 0.10, "p95": 0.15, "p99": 0.25, "tail": 0.15}
"""By how much a figure may be off, if its band is not wider."""
PART_TARGET = 0.10
REFUSED_TARGET = 0.03
"""Points of the share of requests."""


class BadPrediction(ValueError):
    """The file holds no prediction that can be read: why, in one line."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Band(_Kept):
    """Where a figure is expected: the middle of the replications, and the range of most of them."""

    mid: float | None
    """None where only a range can be told."""
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


class Expected(_Kept):
    """Figures of a run, each as a band; milliseconds, and shares of all requests."""

    total: dict[str, Band] = Field(default_factory=dict)
    """mean, p50, p95, p99, tail: those that so many rows can tell."""
    parts: dict[str, Band] = Field(default_factory=dict)
    """The mean of each part."""
    tail: dict[str, Band] = Field(default_factory=dict)
    """The mean of each part over the slowest twentieth."""
    refused: Band = Band(mid=0.0, low=0.0, high=0.0)
    cut_off: Band = Band(mid=0.0, low=0.0, high=0.0)
    """The share whose caller stopped waiting."""

    @property
    def leading(self) -> str | None:
        """The part with the largest mean; by the middle of its band where there is one."""
        return max(self.parts, key=lambda name: _middle(self.parts[name]), default=None)


class Judged(_Kept):
    """One figure, as expected and as it came."""

    figure: str
    expected: Band
    measured: float
    off: float | None
    """Relative to what was measured; of shares the difference. None for a range."""
    allowed: float
    good: bool


class Score(_Kept):
    """A prediction beside the run that came."""

    run: str
    at: datetime
    figures: tuple[Judged, ...]

    @property
    def good(self) -> bool:
        """Whether every figure was met."""
        return all(one.good for one in self.figures)


class Prediction(_Kept):
    """What is kept of a prediction."""

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    made: datetime
    run: str
    levers: tuple[str, ...]
    commit: str | None = None
    seeds: tuple[int, ...] = ()
    requests: int = 0
    """In each replication."""
    use: float | None = None
    capacity_per_s: Band | None = None
    ranges_only: bool = False
    doubts: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    said: str = ""
    """The finding as a sentence."""
    now: Expected
    """The measured run; its bands are points."""
    replayed: Expected
    """The same run replayed without levers: how well it can be replayed at all."""
    then: Expected
    scores: tuple[Score, ...] = ()


def measured(rows: Sequence[Row]) -> Expected:
    """A real run's figures, as bands without width."""
    return expected([rows])


def expected(runs: Iterable[Sequence[Row]], *, ranges_only: bool = False) -> Expected:
    """The figures of several runs of one kind as bands."""
    seen: dict[tuple[str, str], list[float]] = {}
    for rows in runs:
        for key, value in _figures(rows).items():
            seen.setdefault(key, []).append(value)
    bands = {key: _band(values, ranges_only=ranges_only) for key, values in seen.items()}

    def of(kind: str) -> dict[str, Band]:
        return {name: band for (group, name), band in bands.items() if group == kind}

    none = Band(mid=0.0, low=0.0, high=0.0)
    return Expected(
        total=of("total"),
        parts=of("part"),
        tail=of("tail"),
        refused=bands.get(("share", "refused"), none),
        cut_off=bands.get(("share", "cut_off"), none),
    )


def _figures(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    counted = steady(rows)
    cut = sum(row.censored for row in counted)
    found: dict[tuple[str, str], float] = {}
    with suppress(BadSample):  # nobody was answered: only the shares are told
        total, parts = figures(sample(rows))
        told = {name: getattr(total, name) for name in TOTALS}
        if cut:  # the answered ones are the quick ones
            told["mean"] = told["tail"] = None
        found |= {("total", name): value for name, value in told.items() if value is not None}
        found |= {("part", name): part.mean for name, part in parts.items()}
        found |= {("tail", name): part.tail or 0.0 for name, part in parts.items()}
    if counted:
        refused = sum(row.outcome == "refused" for row in counted)
        found["share", "refused"] = refused / len(counted)
        found["share", "cut_off"] = cut / len(counted)
    return found


def _band(values: Sequence[float], *, ranges_only: bool) -> Band:
    miss = (1.0 - LEVEL) / 2
    low, mid, high = np.quantile(values, (miss, 0.5, 1.0 - miss))
    return Band(mid=None if ranges_only else float(mid), low=float(low), high=float(high))


def _middle(band: Band) -> float:
    return (band.low + band.high) / 2 if band.mid is None else band.mid


# -- judging ----------------------------------------------------------------------------------------


def score(prediction: Prediction, run: Run) -> Score:
    """Set the prediction beside a run that was made later; raises BadPrediction where it cannot be."""
    if run.name == prediction.run:
        raise BadPrediction(
            f"{run.name} is the run that was predicted from; measure the change first"
        )
    real = measured(run.rows)
    judged = [
        _relative(name, band, _middle(real.total[name]), TARGETS[name])
        for name, band in prediction.then.total.items()
        if name in real.total
    ]
    whole = real.total.get("mean")
    for name, band in prediction.then.parts.items():
        part = real.parts.get(name)
        if part is not None and whole is not None and part.low >= NAMED_SHARE * whole.low:
            judged.append(_relative(name, band, part.low, PART_TARGET))
    for name, share in (("refused", "refused"), ("cut off", "cut_off")):
        judged.append(_share(name, getattr(prediction.then, share), getattr(real, share).low))
    return Score(run=run.name, at=datetime.now(UTC), figures=tuple(judged))


def _relative(name: str, band: Band, real: float, allowed: float) -> Judged:
    off = None if band.mid is None or real == 0 else band.mid / real - 1.0
    good = real in band or (off is not None and abs(off) <= allowed)
    return Judged(figure=name, expected=band, measured=real, off=off, allowed=allowed, good=good)


def _share(name: str, band: Band, real: float) -> Judged:
    off = None if band.mid is None else band.mid - real
    good = real in band or (off is not None and abs(off) <= REFUSED_TARGET)
    return Judged(
        figure=name, expected=band, measured=real, off=off, allowed=REFUSED_TARGET, good=good
    )


# -- keeping ----------------------------------------------------------------------------------------


def keep(prediction: Prediction, folder: Path) -> Path:
    """Write a prediction into the folder of its run; the file's path."""
    name = re.sub(r"[^\w.%-]+", "-", "_".join(prediction.levers) or "nothing")[:80]
    stamp = prediction.made.strftime("%Y-%m-%dT%H%M%S.%fZ")
    path = folder / FOLDER / f"{stamp}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(prediction, path)
    return path


def keep_score(prediction: Prediction, path: Path, found: Score) -> Prediction:
    """Write a score into the prediction's file; one of the same run takes the place of the older."""
    others = tuple(old for old in prediction.scores if old.run != found.run)
    after = prediction.model_copy(update={"scores": (*others, found)})
    _write(after, path)
    return after


def kept(path: Path) -> Prediction:
    """Read a prediction; raises BadPrediction."""
    try:
        body: Any = orjson.loads(path.read_bytes())
    except OSError:
        raise BadPrediction(f"there is no prediction at {path}") from None
    except orjson.JSONDecodeError as error:
        raise BadPrediction(f"{path} is no JSON ({error})") from None
    schema = body.get("schema") if isinstance(body, Mapping) else None
    if not isinstance(schema, int):
        raise BadPrediction(f"{path} is no prediction: it names no schema version")
    if schema > SCHEMA:
        raise BadPrediction(f"{path} was written by a newer tailrace (schema {schema})")
    try:
        return Prediction.model_validate(body)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise BadPrediction(f"{path} is damaged at {where}") from None


def past_errors(root: Path) -> dict[str, tuple[int, float]]:
    """By figure: how often predictions below `root` were judged, and the median of how far they were off."""
    off: dict[str, list[float]] = {}
    for path in sorted(root.glob(f"*/{FOLDER}/*.json"))[-KEPT_MAX:]:
        try:
            found = kept(path)
        except BadPrediction:
            continue
        for one in (judged for scored in found.scores for judged in scored.figures):
            if one.off is not None:
                off.setdefault(one.figure, []).append(abs(one.off))
    return {name: (len(values), median(values)) for name, values in off.items()}


def _write(prediction: Prediction, path: Path) -> None:
    body = prediction.model_dump(mode="json", by_alias=True)
    draft = path.with_suffix(".part")
    draft.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    draft.replace(path)
