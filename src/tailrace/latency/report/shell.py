"""What every report of one HTML file is made of: both languages side by side, a switch, and tables.

The language is switched by a radio button and a style rule: no scripts, no other files.
"""

from collections.abc import Mapping, Sequence
from html import escape

from tailrace.latency.report.style import STYLE, wide
from tailrace.latency.report.words import WORDS, Language

NAMES: dict[Language, str] = {"ko": "한국어", "en": "English"}


def document(title: str, bodies: Mapping[Language, str], language: Language = "en") -> str:
    """The whole file; `language` is the one that is shown at first, `title` is plain text."""
    choices = "".join(
        f'<label><input type="radio" name="language" id="{key}"'
        f"{' checked' if key == language else ''}> {name}</label>"
        for key, name in NAMES.items()
    )
    legend = f"<legend>{WORDS['ko']['language']} / {WORDS['en']['language']}</legend>"
    inside = "".join(f'<div class="{key}" lang="{key}">{bodies[key]}</div>' for key in NAMES)
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · tailrace</title><style>{STYLE}</style></head>"
        f"<body><main><fieldset>{legend}{choices}</fieldset>{inside}</main></body></html>\n"
    )


def grid(name: str, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table of plain texts."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in cells
    )
    return wide(
        f'<table data-part="{name}"><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>'
    )
