"""A run's report as one HTML file: no scripts, no other files, light and dark, Korean and English."""

from collections.abc import Iterator
from html import escape

from tailrace.latency.cost import Cost
from tailrace.latency.report import drawings, money, table
from tailrace.latency.report.shell import NAMES, document, grid
from tailrace.latency.report.told import Told
from tailrace.latency.report.words import WORDS, Language
from tailrace.latency.runs import Run


def page(run: Run, told: Told | None, found: Cost | None, language: Language = "en") -> str:
    """The whole report; `language` is the one that is shown at first."""
    bodies = {key: "".join(_Page(run, told, found, key).body()) for key in NAMES}
    return document(f"{run.summary.scenario} {run.summary.case}".strip(), bodies, language)


class _Page:
    """The report in one language."""

    def __init__(self, run: Run, told: Told | None, found: Cost | None, language: Language) -> None:
        self.run, self.told, self.found = run, told, found
        self.language, self.words = language, WORDS[language]

    def body(self) -> Iterator[str]:
        """Everything from the title to the machine."""
        s = self.run.summary
        case = f" · {s.case}" if s.case else ""
        yield f"<h1>{escape(self.words['where'])}: {escape(s.scenario + case)}</h1>"
        yield f"<p>{escape(s.question)}</p>"
        yield f"<section>{''.join(self._verdict())}</section>"
        if self.told is not None:
            yield from self._drawn(self.told)
        if self.found is not None:
            said = " ".join(money.sentences(self.found, self.language))
            cells = money.cells(self.found, self.language)
            inside = f"<p>{escape(said)}</p>" + grid("cost", money.HEADS[self.language], cells)
            yield self._section("cost", inside)
        yield f'<p class="soft">{self._made()}</p>'

    def _verdict(self) -> Iterator[str]:
        s = self.run.summary
        yield f'<p class="say" data-part="verdict">{escape(table.verdict(self.told, self.language))}</p>'
        if s.validity.valid:
            yield f'<p class="good">{escape(self.words["valid"])}</p>'
        else:
            why = "; ".join(s.validity.reasons)
            yield f'<p class="bad">{escape(self.words["invalid"])}: {escape(why)}</p>'
        if self.told is not None and (cut := table.cut_off(self.told, self.language)):
            yield f'<p class="bad">{escape(cut)}</p>'
        asked = f"{s.protocol} {s.target} {s.model or ''}"
        for key, value in (
            ("asked", asked),
            ("load", table.load_words(s)),
            ("requests", table.request_words(s)),
        ):
            yield f'<p class="soft">{escape(self.words[key])}: {escape(value)}</p>'
        for note in s.notes:
            yield f'<p class="soft">{escape(note)}</p>'
        yield f'<p class="soft">{escape(self.words["stale"].format(day=s.best_before))}</p>'

    def _drawn(self, told: Told) -> Iterator[str]:
        words = self.words
        keys = drawings.legend([line.name for line in told.shown])
        yield self._section("shares", drawings.share_bars(told, words) + keys)
        inside = grid("parts", table.heads(self.language), table.cells(told, self.language))
        yield self._section("table", inside, note="table_note")
        typical = words["typical"].format(ms=table.number(told.typical.wall_ms))
        slow = words["slow"].format(ms=table.number(told.slow.wall_ms))
        yield self._section(
            "waterfall",
            f"<p>{escape(typical)}</p>{drawings.waterfall(told.typical, typical)}"
            f"<p>{escape(slow)}</p>{drawings.waterfall(told.slow, slow)}",
            note="waterfall_note",
        )
        yield self._section("tail", drawings.tail_bars(told, words))
        yield self._section("ecdf", drawings.ecdf(told, words), note="ecdf_note")
        yield self._section("day", drawings.time_of_day(told, words), note="day_note")

    def _section(self, title: str, inside: str, note: str | None = None) -> str:
        more = "" if note is None else f'<p class="soft">{escape(self.words[note])}</p>'
        return f"<section><h2>{escape(self.words[title])}</h2>{inside}{more}</section>"

    def _made(self) -> str:
        env = self.run.env
        return escape(
            self.words["made"].format(
                date=f"{self.run.summary.began:%Y-%m-%d %H:%M} UTC",
                commit=env.get("commit") or "-",
                cpu=env.get("cpu") or "-",
                cores=env.get("cores") or "-",
            )
        )
