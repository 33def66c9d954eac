"""Two runs side by side as one HTML file: the verdict, why, the parts, the whole, what is not alike."""

import math
from collections.abc import Iterator
from html import escape

from tailrace.latency.compare import Comparison
from tailrace.latency.compare.totals import TotalChange
from tailrace.latency.interval import Change
from tailrace.latency.moved import Verdict
from tailrace.latency.report import drawings
from tailrace.latency.report.compared_words import WORDS
from tailrace.latency.report.shell import NAMES, document, grid
from tailrace.latency.report.table import number
from tailrace.latency.report.words import Language

SHOWN_SHARE = 0.001
"""A part that takes less of both runs gets no line."""


def compared_page(found: Comparison, language: Language = "en") -> str:
    """The whole page; `language` is the one that is shown at first."""
    bodies = {key: "".join(_body(found, key)) for key in NAMES}
    return document(f"{found.before} · {found.after}", bodies, language)


def verdict_words(verdict: Verdict, language: Language) -> str:
    """The verdict as a sentence. English is the verdict's own text."""
    if language == "en":
        return verdict.text
    points = ""
    if verdict.change is not None:
        low, high = verdict.change.interval.low * 100, verdict.change.interval.high * 100
        points = f"{verdict.change.value * 100:+.0f} %p [{low:+.0f}, {high:+.0f}]"
    rows = "" if verdict.rows_needed is None else WORDS["ko"]["rows"].format(n=verdict.rows_needed)
    said = WORDS["ko"][verdict.kind]
    return said.format(before=verdict.before, after=verdict.after, points=points) + rows


def _body(found: Comparison, language: Language) -> Iterator[str]:
    words = WORDS[language]
    colour = {"better": "good", "worse": "bad", "same": "soft"}[found.turn]
    yield f"<h1>{escape(found.before)} → {escape(found.after)}</h1>"
    yield '<section><p class="say" data-part="verdict">'
    yield f"{escape(verdict_words(found.verdict, language))}</p>"
    yield f'<p class="{colour}" data-part="turn">{escape(words[found.turn])}</p>'
    if found.tail_verdict is not None:
        tail = verdict_words(found.tail_verdict, language)
        yield f"<p>{escape(words['tail'])}: {escape(tail)}</p>"
    yield f"<p>{escape(_why(found, language))}</p></section>"
    yield _section(words["unlike"], _unlike(found, language))
    shown = [
        part
        for part in found.parts
        if max(abs(part.before_share), abs(part.after_share)) >= SHOWN_SHARE
    ]
    bars = drawings.stacked(
        [
            (f"A  {found.before}", [(part.name, part.before_ms) for part in shown]),
            (f"B  {found.after}", [(part.name, part.after_ms) for part in shown]),
        ]
    )
    yield _section(words["shares"], bars + drawings.legend([part.name for part in shown]))
    heads = [words[key] for key in ("part", "source", "a_mean", "b_mean", "change", "a_share")]
    heads += [words["b_share"], words["points"]]
    cells = [
        [
            part.name,
            _source(part.source_before, part.source_after),
            number(part.before_ms),
            number(part.after_ms),
            _change(part.change, 1.0, 1),
            f"{part.before_share:.0%}",
            f"{part.after_share:.0%}",
            _change(part.share_change, 100.0, 0),
        ]
        for part in shown
    ]
    yield _section(words["parts"], grid("changes", heads, cells), words["parts_note"])
    yield from _tails(found, [part.name for part in shown], words)
    heads = [words[key] for key in ("total", "a", "b", "total_change", "noise", "turn")]
    lines = [_total(total, words) for total in found.totals]
    yield _section(words["totals"], grid("totals", heads, lines), words["totals_note"])


def _tails(found: Comparison, names: list[str], words: dict[str, str]) -> Iterator[str]:
    if found.tails is None:
        return
    one, other = found.tails
    cells = [
        [name, number(one.parts.get(name, 0.0)), number(other.parts.get(name, 0.0))]
        for name in names
    ]
    cells.append([words["total"], number(one.total_ms), number(other.total_ms)])
    title = words["budget"].format(share=f"{(1 - one.q) * 100:g}")
    yield _section(title, grid("tails", [words["part"], words["a"], words["b"]], cells))


def _why(found: Comparison, language: Language) -> str:
    if language == "en":
        return found.why
    part = next(part for part in found.parts if part.name == found.verdict.after)
    whole = [sum(getattr(each, name) for each in found.parts) for name in ("before_ms", "after_ms")]
    return WORDS["ko"]["why"].format(
        part=part.name,
        shares=f"{part.before_share:.0%} → {part.after_share:.0%}",
        own=f"{number(part.before_ms)} → {number(part.after_ms)} ms",
        whole=f"{number(whole[0])} → {number(whole[1])} ms",
    )


def _unlike(found: Comparison, language: Language) -> str:
    lines = [difference.text() for difference in found.differences]
    lines += found.notes
    if not lines:
        return f"<p>{escape(WORDS[language]['alike'])}</p>"
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _source(before: str, after: str) -> str:
    return before if before == after else f"{before} / {after}"


def _total(total: TotalChange, words: dict[str, str]) -> list[str]:
    scale = 1.0 if total.unit == "ms" else 100.0
    noise = "-" if total.noise is None else _plain(total, total.noise)
    return [
        total.name,
        _plain(total, total.before),
        _plain(total, total.after),
        _change(total.change, scale, 1),
        f"{noise} ({total.noise_from})" if total.noise_from else noise,
        words[total.turn],
    ]


def _plain(total: TotalChange, value: float) -> str:
    if total.unit == "share":
        return f"{value:.1%}"
    return number(value) if math.isfinite(value) else "∞"


def _change(change: Change, scale: float, digits: int) -> str:
    low, high = change.interval.low * scale, change.interval.high * scale
    return f"{change.value * scale:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def _section(title: str, inside: str, note: str | None = None) -> str:
    more = "" if note is None else f'<p class="soft">{escape(note)}</p>'
    return f"<section><h2>{escape(title)}</h2>{inside}{more}</section>"
