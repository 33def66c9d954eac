"""Text to terms: what the keyword leg looks up. Bigrams across spaces for Korean, Latin words whole.

Korean writers put spaces where they like and glue particles to nouns; pairs of neighbouring characters,
spaces not counted, meet both. They write one foreign sound with several letters (까뮈, 카뮈) and mistake ㅐ
for ㅔ; in terms such letters are one. Any text gives terms and never an error. Knows no store.
"""

import re
import unicodedata

from tailrace.stores.port import TERMS_MAX

QUERY_CHARS_MAX = 1000
"""Characters of a query that are read; what follows does not count."""

TERM_CHARS_MAX = 64
"""Characters of one term; a longer word is cut."""

_SCRIPT = (
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_MARKS = "".join(chr(c) for c in range(0x300, 0x1100) if unicodedata.category(chr(c))[0] == "M")
_FIRST = {1: 0, 15: 0, 4: 3, 16: 3, 8: 7, 17: 7, 10: 9, 13: 12, 14: 12}
"""First letters that are one, by their place in Unicode: ㄲㅋ ㄱ, ㄸㅌ ㄷ, ㅃㅍ ㅂ, ㅆ ㅅ, ㅉㅊ ㅈ."""
_MIDDLE = {1: 5, 3: 7, 10: 11, 15: 11}
"""Vowels that are one: ㅐ ㅔ, ㅒ ㅖ, ㅙㅞ ㅚ."""


def _sounds() -> dict[int, int]:
    """Every syllable that is folded, and into which."""
    table = {}
    for code in range(11172):
        first, middle, last = code // 588, code % 588 // 28, code % 28
        folded = _FIRST.get(first, first) * 588 + _MIDDLE.get(middle, middle) * 28 + last
        if folded != code:
            table[0xAC00 + code] = 0xAC00 + folded
    return table


_SOUNDS = _sounds()
_PIECES = re.compile(
    rf"(?P<script>[{_SCRIPT}]+)"
    r"|(?P<number>[0-9]+(?:,[0-9]{3})*)"
    rf"|(?P<word>(?:(?![{_SCRIPT}0-9_])[\w{_MARKS}])+(?:[0-9]+(?![^\W_]))?[+#]{{0,2}})"
)


def normalised(text: str) -> str:
    """Composed (NFKC), case folded, without lone surrogates and controls; lines are kept."""
    if not text.isascii():
        text = "".join(c for c in text if not "\ud800" <= c <= "\udfff")
        text = unicodedata.normalize("NFKC", text)
    folded = unicodedata.normalize("NFC", text.casefold())
    return "".join(c if c >= " " or c == "\n" else " " for c in folded)


class Bigrams:
    """The default analyser: needs nothing, and loses little to a morphological one."""

    fingerprint = "bigrams-2"

    def document_terms(self, text: str) -> list[str]:
        """The terms of a field, as often as they occur; see the port."""
        return [term for line in normalised(text).split("\n") for term in line_terms(line)]

    def query_terms(self, text: str) -> list[str]:
        """The distinct terms of a query; see the port."""
        line = normalised(text[:QUERY_CHARS_MAX]).replace("\n", " ")
        return list(dict.fromkeys(line_terms(line)))[:TERMS_MAX]


def line_terms(line: str) -> list[str]:
    """The terms of one normalised line.

    Characters of Korean, Chinese and Japanese give pairs, across whatever stands between them; one that
    stands alone as a word is a term too; Hangul by its sound. Words of other scripts and numbers are whole.
    """
    terms: list[str] = []
    before = ""
    for piece in _PIECES.finditer(line):
        text = piece.group()
        if piece.lastgroup != "script":
            terms.append(text.replace(",", "")[:TERM_CHARS_MAX])
            before = ""
            continue
        text = text.translate(_SOUNDS)
        if len(text) == 1:
            terms.append(text)
        run = before + text
        terms += (run[i : i + 2] for i in range(len(run) - 1))
        before = text[-1]
    return terms
