"""Two small plots as SVG, written by hand: no library, readable on light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log2

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 60, 40, 170, 40
COLOURS = (
    "#0b6e4f",
    "#d1495b",
    "#30638e",
    "#edae49",
    "#7b5ea7",
    "#8d6a4f",
    "#3aa5a0",
    "#6b7280",
    "#c77dff",
    "#111111",
)
PARTS = {
    "in time": "#0b6e4f",
    "refused": "#edae49",
    "waited in vain": "#d1495b",
    "lost or error": "#444444",
}


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], first: str) -> str:
    """One line a series over doubling x; the line of `first` is thick."""
    top = max(y for points in series.values() for _, y in points) * 1.05 or 1.0
    ticks = sorted({x for points in series.values() for x, _ in points})
    widest = log2(ticks[-1]) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * log2(x) / widest
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top

    made = [_text(LEFT, 22, title, size=15)]
    for i in range(5):
        _, y = place(1, top * i / 4)
        made.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        made.append(_text(LEFT - 6, y + 4, f"{top * i / 4:.0f}", anchor="end"))
    for tick in ticks:
        x, _ = place(tick, 0)
        made.append(_text(x, HEIGHT - BOTTOM + 18, f"{tick:.0f}", anchor="middle"))
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
        width = 4 if name == first else 2
        made.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        )
        y = TOP + 8 + 20 * i
        x = WIDTH - RIGHT + 14
        made.append(
            f'<line x1="{x}" y1="{y}" x2="{x + 20}" y2="{y}" stroke="{colour}" stroke-width="{width}"/>'
        )
        made.append(_text(x + 26, y + 4, name))
    return _page(title, made, HEIGHT)


def bars(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """One bar a row, cut into shares of 1."""
    left, bar, step = 150.0, 18.0, 28.0
    across = WIDTH - left - 30
    made = [_text(20, 22, title, size=15)]
    for i, (part, colour) in enumerate(PARTS.items()):
        x = left + i * 140
        made.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/>')
        made.append(_text(x + 18, 44, part))
    y = 62.0
    for name, shares in rows.items():
        made.append(_text(left - 8, y + 13, name, anchor="end"))
        x = float(left)
        for part, colour in PARTS.items():
            width = across * shares.get(part, 0.0)
            made.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{bar}" fill="{colour}"/>'
            )
            x += width
        y += step
    return _page(title, made, y + 10)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _page(title: str, made: Sequence[str], height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" fill="#222">'
    )
    ground = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>'
    return "\n".join([head, ground, *made, "</svg>"]) + "\n"
