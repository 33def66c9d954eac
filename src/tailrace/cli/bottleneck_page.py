"""The bottleneck's report: one HTML file without scripts, with drawings inside, in Korean and English.

Knows how the story is shown, and nothing of how it was measured.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from tailrace.bench.bottleneck.places import DISTANCE_MS, EDGE_MS, LIMIT_S
from tailrace.cli.bottleneck import Foretold, Story
from tailrace.cli.bottleneck_words import WORDS, Language
from tailrace.latency.prediction import Judged
from tailrace.latency.report.drawings import svg
from tailrace.latency.report.keep import HTML
from tailrace.latency.report.style import COLOURS, STYLE, wide
from tailrace.latency.runs import Run
from tailrace.latency.runs.summary import parts_of, steady
from tailrace.wire.record import Row

KEYS = ("first", "later", "edge", "near")
LINES = {"first": "#8e6c8a", "later": "#4464ad", "edge": "#c8553d", "near": "#2e7d5b"}
LIMIT_MS = round(LIMIT_S * 1000)
SHOWN_SHARE = 0.005
"""Parts of a smaller share are left out of tables."""
SAME, GREW = 0.10, 0.05
"""A part is as long as before within this share, and weighs more from so many points on."""

OURS = """
a { color: inherit } td:first-child { white-space: normal } tr:last-child td { font-weight: inherit }
"""
"""What this report has otherwise: tables without a line of totals, names that may wrap."""


def page(story: Story, language: Language = "ko") -> str:
    """The whole report; `language` is the one that is shown at first."""
    names = {"ko": "한국어", "en": "English"}
    choices = "".join(
        f'<label><input type="radio" name="language" id="{key}"'
        f"{' checked' if key == language else ''}> {name}</label>"
        for key, name in names.items()
    )
    legend = f"<legend>{WORDS['ko']['language']} / {WORDS['en']['language']}</legend>"
    bodies = "".join(
        f'<div class="{key}" lang="{key}">{"".join(_Told(story, key).body())}</div>'
        for key in WORDS
    )
    return (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{WORDS[language]['title']}</title><style>{STYLE}{OURS}</style>"
        f"<body><main><fieldset>{legend}{choices}</fieldset>{bodies}</main></body></html>\n"
    )


class _Told:
    """The story in one language."""

    def __init__(self, story: Story, language: Language) -> None:
        self.story, self.words = story, WORDS[language]

    def say(self, key: str, **holes: object) -> str:
        """A sentence, safe in HTML."""
        return escape(self.words[key].format(**holes))

    def body(self) -> Iterator[str]:
        """Everything, from the title to the lessons."""
        yield f"<h1>{self.say('title')}</h1><p>{self.say('lead')}</p>"
        yield self._section("acts", self._acts())
        yield self._section("bars", self._bars(), f'<p class="soft">{self.say("bars_note")}</p>')
        yield self._section("moved", self._moved())
        yield self._section("ecdf", self._ecdf(), f'<p class="soft">{self.say("ecdf_note")}</p>')
        yield self._section("edge_title", f"<p>{self._edge()}</p>")
        yield self._section(
            "foretold",
            self._foretold("foretold_text", self.story.near),
            self._foretold("foretold_edge", self.story.edge),
        )
        lessons = "".join(f"<li>{self.say(f'lesson{n}')}</li>" for n in (1, 2, 3))
        yield self._section("lessons", f"<ol>{lessons}</ol>")
        first = self.story.runs["later"]
        made = self.say(
            "made",
            date=f"{first.summary.began:%Y-%m-%d %H:%M} UTC",
            seconds=round(self.story.seconds),
            commit=first.env.get("commit") or "-",
        )
        yield f'<p class="soft">{made}<br>{self.say("parts")}</p>'

    def _section(self, title: str, *inside: str) -> str:
        return f'<section data-part="{title}"><h2>{self.say(title)}</h2>{"".join(inside)}</section>'

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        top = "".join(f"<th>{self.say(head)}</th>" for head in heads)
        lines = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
        return wide(f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>")

    # -- the measurements

    def _acts(self) -> str:
        heads = ("act", "n", "cut", "median", "tail", "leads")
        return self._table(heads, [self._act(key) for key in KEYS])

    def _act(self, key: str) -> list[str]:
        run = self.story.runs[key]
        rows = steady(run.rows)
        cut = sum(row.censored for row in rows)
        means = _means(rows)
        leads = max(means, key=lambda name: means[name])
        share = means[leads] / sum(means.values())
        return [
            f'<a href="{key}/{HTML}">{self.say(key)}</a>',
            str(len(rows)),
            str(cut),
            self._or_limit(run, None if run.summary.total is None else run.summary.total.p50),
            self._or_limit(
                run, None if run.summary.total is None or cut else run.summary.total.tail
            ),
            f"{leads} {share:.0%}",
        ]

    def _or_limit(self, run: Run, ms: float | None) -> str:
        """What was cut off is longer than all else: a figure that it reaches is told as the limit only."""
        if ms is not None:
            return f"{ms:,.0f} ms"
        limit = self.say("at_least", limit=f"{LIMIT_MS:,}")
        return limit if run.summary.censored else self.say("too_small")

    # -- drawings

    def _bars(self) -> str:
        means = {key: _means(steady(self.story.runs[key].rows)) for key in KEYS}
        longest = max(sum(m.values()) for m in means.values())
        pieces, shown = [], dict.fromkeys(COLOURS, False)
        for number, key in enumerate(KEYS):
            x, y = 0.0, 20 + number * 58
            cut = any(row.censored for row in self.story.runs[key].rows)
            whole = sum(means[key].values())
            sign = "≥ " if cut else ""
            pieces.append(f'<text x="0" y="{y}">{self.say(key)} · {sign}{whole:,.0f} ms</text>')
            for name, ms in means[key].items():
                width = max(0.0, ms) / longest * 900
                if width < 0.5:
                    continue
                shown[name] = True
                colour = COLOURS.get(name, "#777")
                pieces.append(
                    f'<rect x="{x:.1f}" y="{y + 7}" width="{width:.1f}" height="22" fill="{colour}">'
                    f"<title>{escape(name)} {ms:,.1f} ms, {ms / whole:.0%}</title></rect>"
                )
                if width > 70:
                    pieces.append(
                        f'<text x="{x + 6:.1f}" y="{y + 23}" style="fill:#fff">{escape(name)} '
                        f"{ms / whole:.0%}</text>"
                    )
                x += width
        keys = "".join(
            f'<span><i style="background:{COLOURS[name]}"></i>{name}</span>'
            for name, seen in shown.items()
            if seen
        )
        drawn = svg(20 + len(KEYS) * 58, self.words["bars"], "".join(pieces), width=900)
        return f'{drawn}<div class="keys">{keys}</div>'

    def _ecdf(self) -> str:
        left, right, top, bottom, low, high = 40.0, 890.0, 16.0, 300.0, 20.0, 8000.0

        def x(ms: float) -> float:
            share = math.log(min(max(ms, low), high) / low) / math.log(high / low)
            return left + share * (right - left)

        def y(share: float) -> float:
            return bottom - share * (bottom - top)

        pieces = [
            f'<line class="rule" x1="{left}" x2="{right}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
            f'<text class="faint" x="0" y="{y(share) + 4:.1f}">{share:g}</text>'
            for share in (0.0, 0.5, 0.95, 1.0)
        ]
        pieces += [
            f'<text class="faint" x="{x(ms):.1f}" y="{bottom + 18}" text-anchor="middle">{ms:,}</text>'
            for ms in (20, 50, 100, 200, 500, 1000, 2000, 5000)
        ]
        at = x(LIMIT_MS)
        pieces.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}" stroke="#c8553d" '
            f'stroke-dasharray="4 4"/><text class="faint" x="{at + 6:.1f}" y="{bottom - 8}" '
            f'text-anchor="start">{self.say("limit", limit=f"{LIMIT_MS:,}")}</text>'
        )
        for key in KEYS:
            rows = steady(self.story.runs[key].rows)
            walls = sorted(row.wall_ms for row in rows if row.outcome == "ok")
            path, before = [], 0.0
            for number, wall in enumerate(walls, 1):
                path += [
                    f"{x(wall):.1f},{y(before):.1f}",
                    f"{x(wall):.1f},{y(number / len(rows)):.1f}",
                ]
                before = number / len(rows)
            pieces.append(
                f'<polyline fill="none" stroke="{LINES[key]}" stroke-width="2" points="{" ".join(path)}">'
                f"<title>{self.say(key)}</title></polyline>"
            )
        keys = "".join(
            f'<span><i style="background:{LINES[key]}"></i>{self.say(key)}</span>' for key in KEYS
        )
        drawn = svg(326, self.words["ecdf"], "".join(pieces), width=900)
        return f'{drawn}<div class="keys">{keys}</div>'

    # -- what follows from them

    def _moved(self) -> str:
        verdict = self.story.verdict
        said = self.say(f"moved_{verdict.kind}", before=verdict.before, after=verdict.after)
        first, later = (_means(steady(self.story.runs[key].rows)) for key in ("first", "later"))
        then, now = sum(first.values()), sum(later.values())
        rows = [
            [
                escape(name),
                f"{first.get(name, 0.0):,.0f}",
                f"{first.get(name, 0.0) / then:.0%}",
                f"{later.get(name, 0.0):,.0f}",
                f"{later.get(name, 0.0) / now:.0%}",
            ]
            for name in dict.fromkeys([*first, *later])
            if max(first.get(name, 0.0) / then, later.get(name, 0.0) / now) > SHOWN_SHARE
        ]
        heads = ("part", "ms_then", "share_then", "ms_now", "share_now")
        relative = [
            name
            for name in first.keys() & later.keys()
            if abs(later[name] - first[name]) < SAME * first[name]
            and later[name] / now - first[name] / then > GREW
        ]
        note = self.say("relative", parts=", ".join(relative)) if relative else ""
        return f'<p class="say">{said}</p>{self._table(heads, rows)}<p class="soft">{note}</p>'

    def _edge(self) -> str:
        rows = steady(self.story.runs["edge"].rows)
        return self.say(
            "edge_text",
            far=f"{DISTANCE_MS:.0f}",
            net=f"{EDGE_MS:.0f}",
            count=len(rows),
            cut=sum(row.censored for row in rows),
            limit=f"{LIMIT_MS:,}",
        )

    def _foretold(self, text: str, foretold: Foretold) -> str:
        levers = ", ".join(foretold.prediction.levers)
        rows = [self._judged(one) for one in foretold.score.figures]
        heads = ("figure", "said", "range", "came", "off", "verdict")
        return f"<p>{self.say(text, levers=levers)}</p>{self._table(heads, rows)}"

    def _judged(self, one: Judged) -> list[str]:
        share = one.figure in {"refused", "cut off"}

        def told(value: float | None) -> str:
            if value is None:
                return "-"
            return f"{value:.1%}" if share else f"{value:,.1f} ms"

        off = "-" if one.off is None else f"{one.off * 100:+.1f} {'pp' if share else '%'}"
        good = self.say("met" if one.good else "missed")
        return [
            escape(self.words.get(one.figure, one.figure)),
            told(one.expected.mid),
            f"{told(one.expected.low)} – {told(one.expected.high)}",
            told(one.measured),
            off,
            f'<span class="{"good" if one.good else "bad"}">{good}</span>',
        ]


def _means(rows: Sequence[Row]) -> Mapping[str, float]:
    """The mean of each part, of answered and cut-off requests; these as long as they were waited for."""
    counted = [row for row in rows if row.outcome == "ok" or row.censored]
    return {
        name: sum(row.parts[name].ms for row in counted if name in row.parts) / len(counted)
        for name in parts_of(counted)
    }
