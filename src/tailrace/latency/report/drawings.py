"""A report's drawings as SVG: every one with a text that says what it shows. No scripts, no other files."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np

from tailrace.latency.report.style import colour, wide
from tailrace.latency.report.told import Told
from tailrace.latency.sample import Floats
from tailrace.wire.record import CLIENT_PARTS, Row

Scale = Callable[[float], float]

WIDTH = 860
LEFT, RIGHT = 100, 20
DOTS_MAX = 600
"""The most requests drawn as dots."""
STEPS_MAX = 400
"""The most steps of a distribution's line."""


def svg(height: float, title: str, inside: str, width: float = WIDTH) -> str:
    """A drawing with its text alternative; on a small screen it is scrolled, not shrunk."""
    return wide(
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>{inside}</svg>'
    )


def waterfall(row: Row, title: str) -> str:
    """The parts of one request, each where it happened, from the intended start on."""
    parts = [(name, row.parts[name].ms) for name in CLIENT_PARTS if name in row.parts]
    parts += [(name, part.ms) for name, part in row.parts.items() if name not in CLIENT_PARTS]
    parts = [(name, ms) for name, ms in parts if abs(ms) >= row.wall_ms * 0.0005]
    scale = (WIDTH - LEFT - RIGHT - 90) / max(row.wall_ms, 1e-9)
    at, shapes = 0.0, []
    for number, (name, ms) in enumerate(parts):
        y = 6 + number * 24
        x = LEFT + min(at, at + ms) * scale
        shapes.append(
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{max(1.0, abs(ms) * scale):.1f}" height="18" rx="2" '
            f'fill="{colour(name)}"/>'
            f'<text class="faint" x="{LEFT + max(at, at + ms) * scale + 6:.1f}" y="{y + 14}">'
            f"{ms:,.2f}</text>"
        )
        at += ms
    said = f"{title}: " + ", ".join(f"{name} {ms:,.2f} ms" for name, ms in parts)
    return svg(12 + len(parts) * 24, said, "".join(shapes))


def share_bars(told: Told, words: dict[str, str]) -> str:
    """Two bars of the whole: how much each part has of the mean, and of the tail."""
    rows = [
        (words["of_mean"], [(line.name, line.share.ms) for line in told.shown]),
        (words["of_tail"], [(line.name, line.tail) for line in told.shown]),
    ]
    return stacked(rows)


def stacked(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """A bar for each label, cut by the shares of its parts; what is below nought has no width."""
    shapes, said = [], []
    for number, (label, parts) in enumerate(rows):
        whole = sum(max(0.0, ms) for _, ms in parts) or 1.0
        y, x = 8 + number * 52, 0.0
        shapes.append(f'<text x="0" y="{y + 8}">{escape(label)}</text>')
        for name, ms in parts:
            width = max(0.0, ms) / whole * WIDTH
            shapes.append(
                f'<rect x="{x:.1f}" y="{y + 14}" width="{width:.1f}" height="22" fill="{colour(name)}">'
                f"<title>{escape(name)} {ms / whole:.1%}</title></rect>"
            )
            x += width
        said.append(f"{label}: " + ", ".join(f"{name} {ms / whole:.0%}" for name, ms in parts))
    return svg(4 + len(rows) * 52, "; ".join(said), "".join(shapes))


def legend(names: Sequence[str]) -> str:
    """Which colour is which part."""
    keys = "".join(
        f'<span><i style="background:{colour(name)}"></i>{escape(name)}</span>' for name in names
    )
    return f'<div class="keys">{keys}</div>'


def ecdf(told: Told, words: dict[str, str]) -> str:
    """How many requests take longer than a time, both logarithmic, so that the tail can be read."""
    walls, cut = told.sample.wall, told.sample.censored
    order = np.argsort(walls)
    walls, cut = walls[order], cut[order]
    n = len(walls)
    low, high = max(float(walls[0]) * 0.9, 1e-3), float(walls[-1]) * 1.1 + 1e-3
    floor = 0.5 / n
    x = _log_scale(low, high, LEFT, WIDTH - RIGHT)
    y = _log_scale(1.0, floor, 14, 244)
    chosen = _thinned(n)
    answered = [
        f"{x(float(walls[i])):.1f},{y(max(floor, 1 - (i + 1) / n)):.1f}"
        for i in chosen
        if not cut[i]
    ]
    shapes = [*_x_axis(low, high, x, 244), *_share_axis(floor, y)]
    shapes.append(f'<polyline class="line" points="{" ".join(answered)}"/>')
    if cut.any():
        at = float(walls[cut].min())
        shapes.append(
            f'<line class="line" stroke-dasharray="5 4" x1="{x(at):.1f}" y1="14" x2="{x(at):.1f}" y2="244"/>'
        )
    quantiles = ", ".join(
        f"p{name} {estimate.text()}"
        for name, estimate in zip((50, 95, 99), told.total, strict=True)
    )
    return svg(290, f"{words['slower']}: {quantiles}", "".join(shapes))


def time_of_day(told: Told, words: dict[str, str]) -> str:
    """Every request by its intended start, and the median of stretches of time."""
    rows = told.sample.rows
    clock = all(row.unix_s is not None for row in rows)
    at = np.array([(row.unix_s if clock else row.at_s) or 0.0 for row in rows])
    wall = told.sample.wall
    begin, end = float(at.min()), float(at.max())
    span = max(end - begin, 1e-6)
    low, high = max(float(wall.min()) * 0.8, 1e-3), float(wall.max()) * 1.25 + 1e-3
    y = _log_scale(low, high, 234, 14)

    def x(moment: float) -> float:
        return LEFT + (moment - begin) / span * (WIDTH - LEFT - RIGHT)

    shapes = [_level(y(tick), f"{tick:g} ms") for tick in _decades(low, high)]
    for moment, anchor in ((begin, "start"), ((begin + end) / 2, "middle"), (end, "end")):
        label = f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}" if clock else f"{moment:.0f} s"
        shapes.append(
            f'<text class="faint" x="{x(moment):.1f}" y="258" text-anchor="{anchor}">{label}</text>'
        )
    step = max(1, len(rows) // DOTS_MAX)
    shapes += [
        f'<circle class="dot" cx="{x(float(at[i])):.1f}" cy="{y(float(wall[i])):.1f}" r="2.2"/>'
        for i in range(0, len(rows), step)
    ]
    middles = _middles(at, wall)
    line = " ".join(f"{x(moment):.1f},{y(median):.1f}" for moment, median in middles)
    shapes.append(f'<polyline class="line" points="{line}"/>')
    said = ", ".join(f"{median:,.1f} ms" for _, median in middles)
    return svg(270, f"{words['day']}: {said}", "".join(shapes))


def tail_bars(told: Told, words: dict[str, str]) -> str:
    """Each part's mean, thin, and its mean in the tail, thick."""
    lines = told.shown
    most = max(max(abs(line.tail), abs(line.share.ms)) for line in lines) or 1.0
    scale = (WIDTH - LEFT - RIGHT - 110) / most
    shapes, said = [], []
    for number, line in enumerate(lines):
        y = 4 + number * 30
        tail, mean = max(0.0, line.tail) * scale, max(0.0, line.share.ms) * scale
        shapes.append(
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(line.name)}</text>'
            f'<rect x="{LEFT}" y="{y + 1}" width="{tail:.1f}" height="14" fill="{colour(line.name)}"/>'
            f'<rect x="{LEFT}" y="{y + 17}" width="{mean:.1f}" height="5" fill="{colour(line.name)}" '
            f'opacity=".55"/><text class="faint" x="{LEFT + max(tail, mean) + 6:.1f}" y="{y + 15}">'
            f"{line.tail:,.1f} / {line.share.ms:,.1f}</text>"
        )
        said.append(f"{line.name} {line.tail:,.1f} ms")
    title = f"{words['of_tail']}: " + ", ".join(said)
    return svg(8 + len(lines) * 30, title, "".join(shapes))


def _middles(at: Floats, wall: Floats) -> list[tuple[float, float]]:
    order = np.argsort(at)
    pieces = max(1, min(40, len(at) // 10))
    return [
        (float(at[piece].mean()), float(np.median(wall[piece])))
        for piece in np.array_split(order, pieces)
    ]


def _thinned(n: int) -> Sequence[int]:
    """Which of n ordered values are drawn: all of the tail, fewer of the rest."""
    if n <= STEPS_MAX:
        return range(n)
    spread = np.unique(n - np.geomspace(1, n, STEPS_MAX).astype(int))
    return [int(i) for i in spread]


def _log_scale(low: float, high: float, start: float, end: float) -> Scale:
    """From a value to a place, logarithmic."""
    begin, span = math.log(low), math.log(high) - math.log(low)

    def place(value: float) -> float:
        share = (math.log(value) - begin) / span if span else 0.0
        return start + share * (end - start)

    return place


def _decades(low: float, high: float) -> Iterator[float]:
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**power
            if low <= value <= high:
                yield value


def _x_axis(low: float, high: float, x: Scale, bottom: float) -> Iterator[str]:
    ticks = list(_decades(low, high))
    for tick in ticks[:: max(1, math.ceil(len(ticks) / 9))]:
        yield (
            f'<line class="rule" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="14" y2="{bottom}"/>'
            f'<text class="faint" x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle">{tick:g} ms</text>'
        )


def _share_axis(floor: float, y: Scale) -> Iterator[str]:
    for share in (1.0, 0.5, 0.1, 0.05, 0.01, 0.001, 0.0001):
        if share >= floor:
            yield _level(y(share), f"{share:.4g}")


def _level(y: float, label: str) -> str:
    """A horizontal rule with its label at the left."""
    return (
        f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )
