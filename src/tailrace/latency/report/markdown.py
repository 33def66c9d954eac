"""A run's report as Markdown: the standard table, the verdict, and how it was measured."""

from collections.abc import Iterator, Sequence

from tailrace.latency.cost import Cost
from tailrace.latency.report import money, table
from tailrace.latency.report.told import Told
from tailrace.latency.report.words import WORDS, Language
from tailrace.latency.runs import Run


def markdown(run: Run, told: Told | None, found: Cost | None, language: Language = "en") -> str:
    """The whole report."""
    return "\n".join(_lines(run, told, found, language)) + "\n"


def _lines(run: Run, told: Told | None, found: Cost | None, language: Language) -> Iterator[str]:
    s, words = run.summary, WORDS[language]
    yield f"# {s.scenario}{' · ' + s.case if s.case else ''}"
    yield from ("", s.question, "")
    yield f"- {words['asked']}: {s.protocol} `{s.target}`{' · ' + s.model if s.model else ''}"
    yield f"- {words['load']}: {table.load_words(s)}"
    yield f"- {words['requests']}: {table.request_words(s)}"
    yield f"- {_made(run, language)}"
    yield from ("", f"**{table.verdict(told, language)}**", "")
    if s.validity.valid:
        yield words["valid"]
    else:
        yield f"**{words['invalid']}**: " + "; ".join(s.validity.reasons)
    yield from ("", words["stale"].format(day=s.best_before), "")
    yield from (f"- {note}" for note in s.notes)
    if told is not None:
        if (cut := table.cut_off(told, language)) is not None:
            yield from ("", cut)
        yield ""
        yield from rows(table.heads(language), table.cells(told, language))
        yield from ("", words["table_note"])
    if found is not None:
        yield from ("", f"## {words['cost']}", "", " ".join(money.sentences(found, language)), "")
        yield from rows(money.HEADS[language], money.cells(found, language))


def rows(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; numbers stand to the right."""
    yield f"| {' | '.join(heads)} |"
    yield "|---|" + "--:|" * (len(heads) - 1)
    for line in cells:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in line)} |"


def _made(run: Run, language: Language) -> str:
    env = run.env
    return WORDS[language]["made"].format(
        date=f"{run.summary.began:%Y-%m-%d %H:%M} UTC",
        commit=f"`{env.get('commit') or '-'}`",
        cpu=env.get("cpu") or "-",
        cores=env.get("cores") or "-",
    )
