"""Does the answer still hold: the leading part, the levels in the history, and its best-before date.

Whether the leading part moved is compare's verdict and no rule of its own. Knows no schedule and no output.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import median

from tailrace.latency.bootstrap import RESAMPLES
from tailrace.latency.compare import Incomparable, compare, measured
from tailrace.latency.runs import BadRun, Summary
from tailrace.latency.sample import BadSample
from tailrace.latency.watch.changes import POINTS_MIN, SHARE_MIN, shifts
from tailrace.latency.watch.history import Expired, Level, Point

NAMED = 3
"""Changed series that one sentence names."""


def point_of(at: float, case: str, run: str, summary: Summary) -> Point:
    """A run that can be believed, as a line of the history."""
    total = summary.total
    return Point(
        at=at,
        case=case,
        run=run,
        n=summary.n,
        leader=summary.leading,
        best_before=summary.best_before.isoformat(),
        total=None if total is None else Level(p50=total.p50, p95=total.p95),
        parts={
            name: Level(share=part.share, p50=part.p50, p95=part.p95)
            for name, part in summary.parts.items()
        },
    )


def answer(points: Sequence[Point]) -> Point | None:
    """The run whose answer is in force: the first since the last time that one expired."""
    since = max((index for index, point in enumerate(points) if point.expired), default=0)
    return next((point for point in points[since:] if point.gap is None), None)


def expired(
    earlier: Sequence[Point], new: Point, folder: Path, *, resamples: int = RESAMPLES
) -> list[Expired]:
    """Why the answer that was in force no longer is; empty where it holds, or where there is none yet."""
    found = [*_stale(earlier, new)]
    if new.gap is not None or not any(point.gap is None for point in earlier):
        return found
    return [*_moved(earlier, new, folder, resamples), *_changed(earlier, new), *found]


def _stale(earlier: Sequence[Point], new: Point) -> list[Expired]:
    last = next((point for point in reversed(earlier) if point.gap is None), None)
    if last is None or last.best_before is None:
        return []
    today = datetime.fromtimestamp(new.at, UTC).date()
    told = any(
        one.why == "stale" for point in earlier if point.at > last.at for one in point.expired
    )
    if told or today <= date.fromisoformat(last.best_before):
        return []
    text = f"the last measurement was best before {last.best_before}"
    return [Expired(why="stale", text=text, since=new.at)]


def _moved(earlier: Sequence[Point], new: Point, folder: Path, resamples: int) -> list[Expired]:
    reference = answer(earlier)
    if reference is None or reference.run is None or new.run is None:
        return []
    try:
        verdict = compare(
            measured(folder / reference.run), measured(folder / new.run), resamples=resamples
        ).verdict
    except (BadRun, BadSample, Incomparable):
        return []  # the older run was taken away, or was of other texts
    if verdict.kind != "moved":
        return []
    return [Expired(why="moved", text=verdict.text, since=new.at)]


def _changed(earlier: Sequence[Point], new: Point) -> list[Expired]:
    window = [
        point for point in (*earlier, new) if point.gap is None and point.at >= _since(earlier)
    ]
    if len(window) < POINTS_MIN:
        return []
    series, at = _series(window)
    whole = median(series["total p50"]) if series.get("total p50") else 0.0
    shares = frozenset(name for name in series if name.endswith(" share"))
    found = shifts(series, whole, shares)
    if not found:
        return []
    told = "; ".join(
        f"{one.series} {_level(one.before, share=one.series in shares)} to "
        f"{_level(one.after, share=one.series in shares)}"
        for one in found[:NAMED]
    )
    since = at[found[0].series][found[0].index]
    moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M")
    return [Expired(why="changed", text=f"changed since {moment} UTC: {told}", since=since)]


def _since(earlier: Sequence[Point]) -> float:
    """From when on the history is of one piece."""
    told = [one.since for point in earlier for one in point.expired if one.why != "stale"]
    return max(told, default=0.0)


def _series(window: Sequence[Point]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """By name, the values and their moments; of parts only those that ever were of some weight."""
    weighty = {
        name
        for point in window
        for name, part in point.parts.items()
        if abs(part.share) >= SHARE_MIN
    }
    values: dict[str, list[float]] = {}
    at: dict[str, list[float]] = {}
    for point in window:
        levels = {"total": point.total or Level()}
        levels |= {name: point.parts.get(name, Level(share=0.0)) for name in sorted(weighty)}
        for name, level in levels.items():
            told = {"p50": level.p50, "p95": level.p95}
            if name != "total":
                told["share"] = level.share
            for what, value in told.items():
                if value is not None:
                    values.setdefault(f"{name} {what}", []).append(value)
                    at.setdefault(f"{name} {what}", []).append(point.at)
    return values, at


def _level(value: float, *, share: bool) -> str:
    return (
        f"{value:.0%}" if share else f"{value:,.3g} ms" if abs(value) < 100 else f"{value:,.0f} ms"
    )
