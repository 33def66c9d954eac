"""Known-item queries made out of the catalogue by rule and seed: search judged on what nobody tuned it on.

Nothing here knows how the search ranks. A query is drawn from one half of the works (`--half a` to look
into failures, `--half b` to be asked once); works and authors that the dev queries mean are left out.
Labels follow from the rule of the kind: 2 for what was meant, all editions of a work alike, 1 for what
also fits. What else might fit is not labelled and counts as a miss, so figures here are lower bounds.
With `--written` the queries of fusion_written.jsonl come along: sentences, topics and English names that
a person wrote from the records alone; its topics name catalogue keywords, whose books are the labels.
"""

import argparse
import json
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from zlib import crc32

from tailrace.apps.books.catalogue import DATA, QUERIES, shipped_documents
from tailrace.search.quality import Labelled, read_queries
from tailrace.stores.port import Document

WRITTEN = Path(__file__).parent / "fusion_written.jsonl"
PER_KIND = 12
SEED = 2027
VOLUME = re.compile(r"\s*(\d+권?|[상중하])$")
ALIKE = (
    "ㄱㄲㅋ",
    "ㄷㄸㅌ",
    "ㅂㅃㅍ",
    "ㅅㅆ",
    "ㅈㅉㅊ",
    "ㅐㅔ",
    "ㅗㅜ",
    "ㅓㅏ",
    "ㅖㅔ",
    "ㅚㅙㅞ",
    "ㅡㅜ",
)
"""Letters that people mistake for each other, or that stand for one foreign sound."""
FIRST = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
MIDDLE = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"

Rule = Callable[["Catalogue", random.Random], Iterator[tuple[str, dict[str, int]]]]


class Catalogue:
    """The records of one half, and who belongs together."""

    def __init__(self, half: str) -> None:
        self.every = shipped_documents()
        works = json.loads((DATA / "editions.json").read_text(encoding="utf-8"))
        self._work = {id_: sorted(ids) for ids in works.values() for id_ in ids}
        meant = {id_ for query in read_queries(QUERIES) for id_ in query.relevant}
        known = {document.author for document in self.every if document.id in meant}
        self.free = [
            document
            for document in self.every
            if document.id not in meant
            and document.author not in known
            and half in ("ab", "ab"[crc32(self.work(document.id)[0].encode()) % 2])
        ]
        authors = defaultdict(list)
        for document in self.free:
            if document.author and document.author != "작자 미상":
                authors[document.author].append(document)
        self.authors = {
            name: books for name, books in sorted(authors.items()) if len(self.by(name)) > 1
        }

    def work(self, id_: str) -> list[str]:
        """All editions of the work."""
        return self._work.get(id_, [id_])

    def meant(self, document: Document) -> dict[str, int]:
        """The labels of a query that means one work."""
        return dict.fromkeys(self.work(document.id), 2)

    def by(self, author: str) -> dict[str, int]:
        """The labels of a query that means an author: written 2, translated 1."""
        wrote = {d.id: 2 for d in self.every if author in _names(d.author)}
        return {d.id: 1 for d in self.every if author in _names(d.translator)} | wrote


def _names(of: str | None) -> tuple[str, ...]:
    return (of, *of.split(", ")) if of else ()


def _hangul(text: str) -> bool:
    return all("가" <= c <= "힣" or c == " " for c in text)


def _drawn(draw: random.Random, documents: Iterable[Document]) -> Iterator[Document]:
    found = list(documents)
    draw.shuffle(found)
    yield from found


def title_part(all_: Catalogue, draw: random.Random):
    """Half or more of a long title's words, one after the other; other titles that hold them fit too."""
    for document in _drawn(draw, all_.free):
        words = VOLUME.sub("", document.title).split()
        if len(words) < 4:
            continue
        size = draw.randint((len(words) + 1) // 2, len(words) - 1)
        first = draw.randint(0, len(words) - size)
        part = " ".join(words[first : first + size])
        yield part, {d.id: 1 for d in all_.every if part in d.title} | all_.meant(document)


def spacing(all_: Catalogue, draw: random.Random):
    """A title without its spaces, or with one in a wrong place."""
    for document in _drawn(draw, all_.free):
        title = VOLUME.sub("", document.title)
        run = title.replace(" ", "")
        if " " not in title or len(run) < 5:
            continue
        cut = draw.randint(2, len(run) - 2)
        text = draw.choice([run, f"{run[:cut]} {run[cut:]}"])
        if text != title:
            yield text, all_.meant(document)


def typo(all_: Catalogue, draw: random.Random):
    """A title with one letter mistaken, or two syllables changed over."""
    for document in _drawn(draw, all_.free):
        title = VOLUME.sub("", document.title)
        if len(title) >= 4 and _hangul(title) and (wrong := _mistaken(title, draw, 1)) != title:
            yield wrong, all_.meant(document)


def _mistaken(text: str, draw: random.Random, times: int) -> str:
    """The text with letters replaced by ones that are mistaken for them; now and then a changing over."""
    made = list(text)
    places = [i for i, c in enumerate(made) if "가" <= c <= "힣"]
    draw.shuffle(places)
    for place in places:
        if times == 1 and draw.random() < 0.2 and place + 1 < len(made) and made[place + 1] != " ":
            made[place : place + 2] = made[place + 1], made[place]
            return "".join(made)
        if (wrong := _letter(made[place], draw)) != made[place]:
            made[place] = wrong
            times -= 1
        if not times:
            break
    return "".join(made)


def _letter(syllable: str, draw: random.Random) -> str:
    code = ord(syllable) - 0xAC00
    first, middle, last = code // 588, code % 588 // 28, code % 28
    options = [(x, middle) for x in _alike(FIRST, first)] + [
        (first, x) for x in _alike(MIDDLE, middle)
    ]
    if not options:
        return syllable
    first, middle = draw.choice(options)
    return chr(0xAC00 + first * 588 + middle * 28 + last)


def _alike(letters: str, index: int) -> list[int]:
    of = letters[index]
    return [letters.index(c) for group in ALIKE if of in group for c in group if c != of]


def title_author(all_: Catalogue, draw: random.Random):
    """Title and author in either order, spaces or not."""
    for document in _drawn(draw, all_.free):
        if not document.author or not _hangul(document.author):
            continue
        title = VOLUME.sub("", document.title)
        names = [document.author.split()[-1], title]
        draw.shuffle(names)
        yield (
            " ".join(draw.choice([name, name.replace(" ", "")]) for name in names),
            all_.meant(document),
        )


def author(all_: Catalogue, draw: random.Random):
    """An author, alone or with a word such as book."""
    names = list(all_.authors)
    draw.shuffle(names)
    for name in names:
        after = draw.choice(["", "", " 책", " 작품", "의 책", " 책 추천", " 신간"])
        yield draw.choice([name, name.replace(" ", "")]) + after, all_.by(name)


def author_topic(all_: Catalogue, draw: random.Random):
    """An author and a keyword of one book: that keyword's books are meant, the author's others fit."""
    names = list(all_.authors)
    draw.shuffle(names)
    for name in names:
        keyword = draw.choice(all_.authors[name]).keywords[:1]
        if keyword:
            meant = {
                id_: 2 if grade == 2 and keyword[0] in document.keywords else 1
                for document in all_.every
                if (id_ := document.id) and (grade := all_.by(name).get(id_))
            }
            yield f"{name} {keyword[0]}", meant


def loanword(all_: Catalogue, draw: random.Random):
    """A foreign author's name in another spelling: letters that stand for one foreign sound."""
    names = [
        name
        for name, books in all_.authors.items()
        if _hangul(name) and " " in name and any(book.translator for book in books)
    ]
    draw.shuffle(names)
    for name in names:
        other = _mistaken(name, draw, 2)
        if other != name:
            yield other, all_.by(name)


def series(all_: Catalogue, draw: random.Random):
    """The name that several volumes share."""
    volumes = defaultdict(list)
    for document in all_.every:
        if VOLUME.search(document.title):
            volumes[VOLUME.sub("", document.title)].append(document.id)
    free = {document.id for document in all_.free}
    names = sorted(name for name, ids in volumes.items() if name and free & set(ids))
    draw.shuffle(names)
    for name in names:
        ids = {d.id for d in all_.every if d.title.startswith(name)}
        yield (
            name + draw.choice(["", " 시리즈", " 전권"]),
            {other: 2 for id_ in sorted(ids) for other in all_.work(id_)},
        )


def phrase(all_: Catalogue, draw: random.Random):
    """Three to six words out of a description: a lexical question."""
    for document in _drawn(draw, all_.free):
        words = (document.description or "").rstrip(".").split()
        if len(words) < 7:
            continue
        size = draw.randint(3, 6)
        first = draw.randint(0, len(words) - size)
        yield " ".join(words[first : first + size]), all_.meant(document)


RULES: tuple[Rule, ...] = (
    title_part,
    spacing,
    typo,
    title_author,
    author,
    author_topic,
    loanword,
    series,
    phrase,
)


def made(half: str, seed: int, per_kind: int = PER_KIND) -> list[Labelled]:
    """The queries of every rule, the same for the same seed."""
    all_ = Catalogue(half)
    found = []
    for rule in RULES:
        kind = rule.__name__.replace("_", "-")
        draw = random.Random(f"{seed} {half} {kind}")
        texts: set[str] = set()
        for text, relevant in rule(all_, draw):
            if text in texts:
                continue
            texts.add(text)
            nfc = unicodedata.normalize("NFC", text)
            found.append(Labelled(f"{kind}-{len(texts):03}", nfc, kind, relevant))
            if len(texts) == per_kind:
                break
    return found


def written() -> list[Labelled]:
    """The queries a person wrote; a topic's labels are the books of its keywords."""
    all_ = Catalogue("ab")
    found = []
    for number, line in enumerate(WRITTEN.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        relevant = dict.fromkeys(
            (other for id_ in row.get("meant", ()) for other in all_.work(id_)), 2
        )
        for name in row.get("author", ()):
            relevant |= all_.by(name)
        for keyword in row.get("keywords", ()):
            held = {d.id: 1 for d in all_.every if keyword in (d.description or "")}
            relevant = held | relevant | {d.id: 2 for d in all_.every if keyword in d.keywords}
        assert relevant, row
        found.append(Labelled(f"w{number:03}", row["query"], row["kind"], relevant))
    return found


def main() -> None:
    """Write the queries as `tailrace books quality --queries` reads them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--half", choices=("a", "b"), default="b")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--per-kind", type=int, default=PER_KIND)
    parser.add_argument("--written", action="store_true")
    given = parser.parse_args()
    queries = made(given.half, given.seed, given.per_kind)
    if given.written:
        queries += written()
    lines = [
        json.dumps(
            {"qid": q.qid, "query": q.text, "kind": q.kind, "relevant": dict(q.relevant)},
            ensure_ascii=False,
        )
        for q in queries
    ]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} queries in {given.out}")


if __name__ == "__main__":
    main()
