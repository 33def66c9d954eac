"""Which book of the catalogue a cover's words mean: the one that fits, clearly ahead of every other work.

What an engine thinks of its own reading counts for nothing. Letters are compared as the parts of syllables,
so that a letter read wrong costs a part of a syllable; spaces never count, for engines lose them. Knows no
picture. Needs rapidfuzz, imported where it is used.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tailrace.stores.port import Document, Store

WORDS_MAX = 120
"""Words of one cover that are looked at, those of the largest letters first."""
SPAN_MAX = 12
"""Words of one title."""
CANDIDATES_MAX = 20
"""Books that one line of a cover proposes."""
NEAR_MAX = 5
"""Books that are told where none is meant for sure."""
TITLE_LEAST = 0.75
"""How like the title must be where the author is there too."""
AUTHOR_LEAST = 0.7
"""How like the author must be to count as there."""
TITLE_ALONE = 0.9
"""How like the title must be where no author is read."""
ALONE_LETTERS = 4
"""And how many letters it must have: a short one may stand anywhere."""
SIZE_ALIKE = 0.7
"""Letters of this share of the title's size are as large as the title, and so must be part of it."""
SPANS_TRIED = 4
"""Places of a cover where a title is tried, the likest first."""
TITLE_SHARE = 0.7
"""How much of a score is the title's; the rest is the author's."""
AHEAD = 2.0
"""The runner-up must be so many times farther from a perfect fit."""
AHEAD_LEAST = 0.05
"""And behind by this much at least."""
SEEN_LEAST = 0.4
"""A title less like than this is no neighbour."""

_PEOPLE = re.compile(r"[,/·&;]")
_ROLES = re.compile(r"\s+(글|그림|지음|원작|엮음|옮김|저|편)$")
_ABOUT = frozenset(
    "글 그림 지음 지은이 원작 엮음 옮김 옮긴이 저 편 장편소설 소설집 소설 시집 산문집 에세이".split()  # noqa: SIM905
)
"""What covers say beside names: part of a title only where the title has it."""
_NOBODY = {"작자 미상", "미상", "편집부"}
_DIGITS = re.compile(r"[0-9]+")

Why = Literal["", "no-text", "no-match", "ambiguous"]


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One line as it was read, and how large its letters are."""

    text: str
    size: float = 1.0


@dataclass(frozen=True, slots=True)
class Match:
    """A book and how well the words fit it, 0 to 1 each; `span` is where the title stands."""

    document: Document
    score: float
    title: float
    author: float
    span: tuple[int, int]

    @property
    def work(self) -> tuple[str, str]:
        """The same for all editions of one work."""
        return letters(self.document.title), letters(self.document.author or "")

    @property
    def fits(self) -> bool:
        """Whether the words mean this book if they mean any."""
        if self.author >= AUTHOR_LEAST:
            return self.title >= TITLE_LEAST
        enough = len(letters(self.document.title)) >= ALONE_LETTERS
        return self.title >= TITLE_ALONE and enough


@dataclass(frozen=True, slots=True)
class Matched:
    """What a cover's words mean: the book, with its other editions, or why none; and what came near."""

    books: tuple[Match, ...]
    near: tuple[Match, ...]
    why: Why

    @property
    def best(self) -> float:
        """The score of the best, 0 where there is none."""
        return max((match.score for match in (*self.books, *self.near)), default=0.0)


NOTHING = Matched((), (), "no-text")


def match(store: Store, lines: Sequence[ReadLine]) -> Matched:
    """Look the words up; asks the store's keyword leg, so any thread may call this. Raises StoreError."""
    words = _words(lines)
    if not words:
        return NOTHING
    known = _candidates(store, lines)
    found = _scored(words, known) if known else []
    found = [one for one in found if one.title >= SEEN_LEAST]
    found.sort(key=lambda one: (-one.score, one.document.id))
    if not found or not found[0].fits:
        return Matched((), tuple(found[:NEAR_MAX]), "no-match")
    first = found[0]
    books = [one for one in found if one.work == first.work]
    others = [one for one in found if one.work != first.work and not _within(one, first)]
    near = tuple(others[:NEAR_MAX])
    if near and not _ahead(first, near[0]):
        return Matched((), (first, *near)[:NEAR_MAX], "ambiguous")
    return Matched(tuple(books[:NEAR_MAX]), near, "")


def _ahead(first: Match, second: Match) -> bool:
    """Whether the runner-up is clearly farther from a perfect fit than the first."""
    behind = first.score - second.score
    return behind >= AHEAD_LEAST and 1 - second.score >= AHEAD * (1 - first.score)


def _within(one: Match, other: Match) -> bool:
    """Whether one's title is only a piece of what the other's title explains."""
    (begin, end), (first, last) = one.span, other.span
    return first <= begin and end <= last and end - begin < last - first


# -- comparing --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    line: int
    size: float


def _words(lines: Sequence[ReadLine]) -> list[_Word]:
    words = [
        _Word(word, number, line.size)
        for number, line in enumerate(lines)
        for word in line.text.split()
        if letters(word)
    ]
    if len(words) > WORDS_MAX:
        least = sorted((word.size for word in words), reverse=True)[WORDS_MAX - 1]
        words = [word for word in words if word.size >= least][:WORDS_MAX]
    return words


def _candidates(store: Store, lines: Sequence[ReadLine]) -> list[Document]:
    """What the keyword leg finds for all the words together, and for each line."""
    texts = [" ".join(line.text for line in lines), *(line.text for line in lines)]
    ids: dict[str, None] = {}
    for text in dict.fromkeys(texts):
        terms = store.analyzer.query_terms(text)
        if terms:
            hits = store.keyword(terms, CANDIDATES_MAX).hits
            ids.update(dict.fromkeys(hit.id for hit in hits))
    return store.get(list(ids))


class _Cover:
    """The words of a cover, and how like every run of them is to every name in question."""

    def __init__(self, words: Sequence[_Word], names: Sequence[str]) -> None:
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - the extra `covers`
        from rapidfuzz.process import cdist  # noqa: PLC0415

        self._like_one = Levenshtein.normalized_similarity
        self.words = words
        self.spans = [
            (begin, end)
            for begin in range(len(words))
            for end in range(begin + 1, min(len(words), begin + SPAN_MAX) + 1)
        ]
        self._place = {name: place for place, name in enumerate(dict.fromkeys(names))}
        self._like = cdist(
            [parts(self._text(range(*span))) for span in self.spans],
            [parts(name) for name in self._place],
            scorer=self._like_one,
            score_cutoff=SEEN_LEAST,
        )

    def _text(self, places: Iterable[int]) -> str:
        return letters("".join(self.words[place].text for place in places))

    def places(self, name: str) -> list[tuple[float, tuple[int, int]]]:
        """Where a name may stand, and how like it is there, the likest first."""
        column = self._like[:, self._place[name]]
        best = column.argsort(kind="stable")[::-1][:SPANS_TRIED]
        return [(float(column[place]), self.spans[place]) for place in best]

    def person(self, name: str, title: tuple[int, int]) -> tuple[float, set[int]]:
        """How like a name is to what stands outside the title, and the words that say it."""
        for like, (begin, end) in self.places(name):
            if end <= title[0] or begin >= title[1]:
                return like, set(range(begin, end)) if like >= AUTHOR_LEAST else set()
        return 0.0, set()

    def headline(self, name: str, span: tuple[int, int], explained: set[int]) -> float:
        """How like a title is to all that is written as large as it, but for what is explained."""
        inside = range(*span)
        least = SIZE_ALIKE * max(self.words[place].size for place in inside)
        whole = [
            place
            for place, word in enumerate(self.words)
            if place in inside
            or (word.size >= least and place not in explained and word.text not in _ABOUT)
        ]
        text = self._text(whole)
        if not _same_number(name, text):
            return 0.0
        return float(self._like_one(parts(text), parts(name)))


def _scored(words: Sequence[_Word], books: Sequence[Document]) -> list[Match]:
    """Every book, at the place of the cover where it fits best."""
    cover = _Cover(words, [name for book in books for name in (*_titles(book), *_people(book))])
    return [max(_fits(cover, book), key=lambda made: made.score) for book in books]


def _fits(cover: _Cover, book: Document) -> Iterator[Match]:
    people = _people(book)
    for name in _titles(book):
        for _, span in cover.places(name):
            there = [cover.person(person, span) for person in people]
            author = max((like for like, _ in there), default=0.0)
            explained = set().union(*(said for _, said in there))
            title = cover.headline(name, span, explained)
            score = TITLE_SHARE * title + (1 - TITLE_SHARE) * author if people else title
            yield Match(book, score, title, author, span)


def _titles(book: Document) -> list[str]:
    made = [book.title, f"{book.title}{book.subtitle}" if book.subtitle else ""]
    return [name for name in map(letters, made) if name]


def _people(book: Document) -> list[str]:
    """Authors, each by all names the catalogue has; who is nobody is left out."""
    if not book.author or book.author in _NOBODY:
        return []
    written = [_ROLES.sub("", name.strip()) for name in _PEOPLE.split(book.author)]
    return [name for name in map(letters, (*written, *book.aliases)) if len(name) > 1]


def _same_number(name: str, text: str) -> bool:
    """Whether a title's numbers are not contradicted: volume 1 is not volume 2."""
    ours, theirs = _DIGITS.findall(name), _DIGITS.findall(text)
    return not ours or not theirs or ours == theirs


def letters(text: str) -> str:
    """Letters and digits only, composed and folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if sign.isalnum())


def parts(text: str) -> str:
    """Syllables taken apart into their letters."""
    return unicodedata.normalize("NFD", text)
