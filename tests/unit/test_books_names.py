"""The other names that ship: what a line must be, and that the page about them says what is there."""

import json
import re
import unicodedata
from collections import Counter

from tailrace.apps.books.catalogue import DATA, shipped_documents
from tailrace.search.rows import LIST_ITEMS_MAX

LINES = [json.loads(line) for line in (DATA / "names.jsonl").read_text("utf-8").splitlines()]
BOOKS = {
    row["id"]: row
    for row in map(json.loads, (DATA / "books.jsonl").read_text("utf-8").splitlines())
}
NAMES = [name for line in LINES for name in line["aliases"]]
PAGE = (DATA / "NAMES.md").read_text("utf-8")
SCRIPTS = {"LATIN": "latin", "HANGUL": "hangul", "CJK": "east", "HIRAGANA": "east"}
SCRIPTS |= {"KATAKANA": "east", "KATAKANA-HIRAGANA": "east"}


def scripts(name):
    """The scripts of a name's letters; one that no book here is written in is a KeyError."""
    return {SCRIPTS[unicodedata.name(c).split()[0]] for c in name if c.isalpha()}


def said(pattern):
    """A number of the page."""
    found = re.search(pattern, PAGE)
    assert found, pattern
    return int(found[1].replace(",", ""))


def test_every_line_names_a_book_once_and_nothing_else():
    assert all(set(line) == {"id", "aliases"} for line in LINES)
    ids = [line["id"] for line in LINES]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(BOOKS)


def test_a_line_holds_a_few_names_each_once_and_none_that_the_book_has_already():
    for line in LINES:
        names, book = line["aliases"], BOOKS[line["id"]]
        assert 0 < len(names) <= LIST_ITEMS_MAX, line
        assert len(set(names)) == len(names), line
        assert not {book["title"], book["author"]} & set(names), line


def test_names_are_written_as_people_type_them():
    for name in NAMES:
        assert name == unicodedata.normalize("NFC", " ".join(name.split()))
        assert name.isprintable(), name
        assert scripts(name), name


def test_every_name_reaches_the_document_that_is_indexed():
    documents = {document.id: document for document in shipped_documents()}
    assert all(set(line["aliases"]) <= set(documents[line["id"]].aliases) for line in LINES)


def test_the_page_counts_what_is_there():
    counts = Counter("+".join(sorted(scripts(name))) for name in NAMES)
    assert said(r"([\d,]+) lines") == len(LINES)
    assert said(r"([\d,]+) names\. A line") == len(NAMES)
    assert said(r"Latin letters \| ([\d,]+)") == counts["latin"]
    assert said(r"Han and kana, with Latin \| (\d+)") == counts["east"] + counts["east+latin"]
    assert said(r"\| Hangul \| (\d+)") == counts["hangul"]
    assert said(r"Hangul with Latin \| (\d+)") == counts["hangul+latin"]
    translated = {id_ for id_, book in BOOKS.items() if book["translator"]}
    assert said(r"(\d+) books with a translator") == len(translated)
    assert said(r"(\d+) of the \d+ books") == len(translated - {line["id"] for line in LINES})
