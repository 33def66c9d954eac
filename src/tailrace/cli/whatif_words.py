"""What `tailrace whatif` prints: the new table, the finding as a sentence, and what to beware of."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from rich.table import Table

from tailrace.latency.prediction import Band, Expected, Prediction, Score
from tailrace.simulate.levers import Levers

GAIN_SHARE = 0.05
"""A lever that saves a smaller share of the median is called out."""
NO_GAIN_MEANT = ("rate", "timeout", "retries", "door", "seats", "queue-timeout")
"""Levers that are pulled for other reasons than speed: to gain nothing is no fault of theirs."""
SHOWN_SHARE = 0.005
"""Parts of a smaller share than this, before and after, are not shown."""
OFF_SHARE = 0.15
"""A run whose own replay is further off than this is not well described by its lane."""


def table(prediction: Prediction) -> Table:
    """Part by part, and the whole: as it was, and as it would be."""
    title = f"{prediction.run} after {', '.join(prediction.levers)}"
    if prediction.use is not None:
        title += f" · {prediction.use:.0%} in use"
    made = Table(
        title=title, caption="ms; ranges hold 95 % of the replications", title_justify="left"
    )
    for name in ("", "now", "share", "then", "share", "", "slowest 5 % then"):
        made.add_column(name, justify="left" if name == "" else "right", no_wrap=True)
    now, then = prediction.now, prediction.then
    for name in _shown(now, then):
        made.add_row(
            name,
            _figure(now.parts.get(name)),
            _percent(_share(now, name)),
            _figure(then.parts.get(name)),
            _percent(_share(then, name)),
            _range(then.parts.get(name)),
            _figure(then.tail.get(name)) if then.tail.get(name) else "",
        )
    made.add_section()
    for name in ("mean", "p50", "p95", "p99"):
        before, after = now.total.get(name), then.total.get(name)
        was = _figure(before, cut=now.cut_off)
        will = _figure(after, cut=then.cut_off)
        made.add_row(name, was, "", will, "", _range(after), "")
    for name, before, after in (
        ("refused", now.refused, then.refused),
        ("cut off", now.cut_off, then.cut_off),
    ):
        if before.high > 0 or after.high > 0:
            span = f"{after.low:.1%} to {after.high:.1%}"
            made.add_row(name, f"{before.low:.1%}", "", _points(after), "", span, "")
    return made


def finding(levers: Levers, now: Expected, then: Expected) -> str:
    """What the levers save at the median and in the tail, and who leads afterwards."""
    who = " and ".join(levers.words())
    if then.cut_off.high > 0 and "p50" not in then.total:
        return (
            f"With {who} more than half of the requests would be cut off before they had an answer."
        )
    words = [
        said
        for name, where in (("p50", "at p50"), ("tail", "in the slowest 5 %"))
        if (said := _saved(now.total.get(name), then.total.get(name), where))
    ]
    leads = then.leading
    end = f"; after it, {leads} leads with {_percent(_share(then, leads))}" if leads else ""
    return f"{who}: {' and '.join(words) or 'nothing can be told of what is saved'}{end}."


def _saved(now: Band | None, then: Band | None, where: str) -> str:
    if now is None or then is None:
        return ""
    if now.mid is None or then.mid is None:
        least, most = now.low - then.high, now.high - then.low
        if least < 0 < most:
            return f"saves up to {most:,.0f} ms or costs up to {-least:,.0f} ms {where}"
        if most <= 0:
            return f"costs between {-most:,.0f} and {-least:,.0f} ms {where}"
        return f"saves between {least:,.0f} and {most:,.0f} ms {where}"
    saves = now.mid - then.mid
    if saves < 0:
        return f"costs {-saves:,.0f} ms {where}"
    return f"saves {saves:,.0f} ms {where}"


def warnings(
    measured: Expected,
    now: Expected,
    then: Expected,
    alone: Sequence[tuple[Levers, Expected]],
    timeout_s: float,
) -> Iterator[str]:
    """What would win against the levers: another part, the caller's timeout, or the whole itself."""
    limit = (
        f"the callers' limit of {timeout_s * 1000:,.0f} ms" if isfinite(timeout_s) else "the limit"
    )
    if then.cut_off.high > max(0.005, measured.cut_off.high):
        yield (
            f"the timeout wins: {_points(then.cut_off)} of the requests would be cut off by {limit}; what is "
            f"counted above are the quick ones"
        )
    yield from _whole(now, then)
    before = _middle(now.total.get("p50"))
    for lever, figures in alone:
        middle = _middle(figures.total.get("p50"))
        (word,) = lever.words()
        if before is None or middle is None or word.partition("=")[0] in NO_GAIN_MEANT:
            continue
        if before - middle < GAIN_SHARE * before:
            leads = figures.leading or "another part"
            yield f"{word} alone would gain nothing: {leads} leads"
    yield from _own_error(measured, now)


def _whole(now: Expected, then: Expected) -> Iterator[str]:
    """Whether the whole becomes slower, or hardly quicker, and which part is to blame."""
    before, after = now.total.get("p50"), then.total.get("p50")
    was = _middle(before)
    if before is None or after is None or not was:
        return
    grows = max(then.parts, key=lambda name: _grown(now, then, name), default="another part")
    if after.mid is None and after.high > was * (1 + GAIN_SHARE):
        least = "" if after.low <= was else f"{after.low / was:.1f} to "
        may = "may become up to" if after.low <= was else "becomes"
        yield f"the whole {may} {least}{after.high / was:.1f} times slower; {grows} grows most"
    elif after.mid is not None and after.mid > was:
        yield f"the whole becomes {after.mid / was:.1f} times slower: {grows} grows most"
    elif was - (after.low if after.mid is None else after.mid) < GAIN_SHARE * was:
        leads = then.leading or "another part"
        yield f"it hardly moves the whole: {leads} has {_percent(_share(then, leads))} of it"


def _grown(now: Expected, then: Expected, name: str) -> float:
    return (_middle(then.parts.get(name)) or 0.0) - (_middle(now.parts.get(name)) or 0.0)


def _own_error(measured: Expected, now: Expected) -> Iterator[str]:
    real, replayed = _middle(measured.total.get("mean")), _middle(now.total.get("mean"))
    if real is None or replayed is None:
        return
    off = replayed / real - 1.0
    band = now.total["mean"]
    if abs(off) > OFF_SHARE and real not in band:
        yield (
            f"replayed without any lever the run is {off:+.0%} off its measured mean: its server is not the "
            f"lane it is taken for (--door, --slots)"
        )


def score_table(prediction: Prediction, found: Score) -> Table:
    """Every figure as it was expected and as it came."""
    made = Table(
        title=f"{', '.join(prediction.levers)}: foretold from {prediction.run}, came as {found.run}"
    )
    for name in ("figure", "foretold", "range", "came", "off", "allowed", ""):
        made.add_column(name, justify="left" if name == "figure" else "right", no_wrap=True)
    for one in found.figures:
        share = one.figure in {"refused", "cut off"}
        made.add_row(
            one.figure,
            _points(one.expected) if share else _figure(one.expected),
            f"{one.expected.low:.1%} to {one.expected.high:.1%}" if share else _range(one.expected),
            f"{one.measured:.1%}" if share else f"{one.measured:,.1f}",
            "" if one.off is None else f"{one.off * 100:+.1f} {'points' if share else '%'}",
            f"{one.allowed * 100:.0f} {'points' if share else '%'}",
            "[green]met[/]" if one.good else "[red]off[/]",
        )
    return made


def error_lines(errors: Mapping[str, tuple[int, float]]) -> list[str]:
    """How far predictions of the same folder were off until now."""
    told = [
        f"{name} {off * 100:.1f} {'points' if name in {'refused', 'cut off'} else '%'}"
        for name in ("mean", "p50", "p95", "refused")
        if name in errors and (off := errors[name][1]) is not None
    ]
    if not told:
        return ["No prediction of this folder that told more than a range has been judged yet."]
    count = max(number for number, _ in errors.values())
    return [f"Own error until now, over {count} judged predictions (median): {', '.join(told)}."]


def _shown(now: Expected, then: Expected) -> list[str]:
    names = list(dict.fromkeys([*now.parts, *then.parts]))
    return [n for n in names if max(abs(_share(now, n)), abs(_share(then, n))) >= SHOWN_SHARE]


def _share(figures: Expected, name: str | None) -> float:
    whole = sum(_middle(band) or 0.0 for band in figures.parts.values())
    return (_middle(figures.parts.get(name or "")) or 0.0) / whole if whole else 0.0


def _middle(band: Band | None) -> float | None:
    if band is None:
        return None
    return (band.low + band.high) / 2 if band.mid is None else band.mid


def _figure(band: Band | None, cut: Band | None = None) -> str:
    """A figure, or why there is none: `cut` is the share of requests whose time nobody knows."""
    if band is None:
        return "cut off" if cut is not None and cut.high > 0 else "n too small"
    return "range" if band.mid is None else f"{band.mid:,.1f}"


def _range(band: Band | None) -> str:
    return "" if band is None else f"{band.low:,.1f} to {band.high:,.1f}"


def _points(band: Band) -> str:
    return f"{band.low:.0%} to {band.high:.0%}" if band.mid is None else f"{band.mid:.1%}"


def _percent(share: float) -> str:
    return f"{share:.0%}"
