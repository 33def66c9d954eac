"""Covers, end to end: a picture in, its book out; the real detector and the real tesseract read it."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bookshops import Shop, serving_books
from covers_here import need_covers

need_covers()

from PIL import Image  # noqa: E402

from cover_pictures import LAYOUTS, SPOILS, Words, busy, cover, filed  # noqa: E402
from tailrace.apps.books.catalogue import shipped_documents  # noqa: E402
from tailrace.apps.books.cover.match import ReadLine, letters, match  # noqa: E402

PATH = "/api/books/cover"
JPEG = {"content-type": "image/jpeg"}
SHARE_FOUND = 0.8
"""Of the covers that are drawn here; some 95 % are found."""
FOREIGN = [
    Words(*pair)
    for pair in json.loads(
        (Path(__file__).parent.parent / "data" / "foreign_covers.json").read_text(encoding="utf-8")
    )
]
"""Books that the catalogue does not hold; many have half a title, or the author, of one that it does."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tiny_embedder_folder: Path) -> Iterator[Shop]:
    """The catalogue that ships; no vectors: covers are looked up by their words."""
    folder = tmp_path_factory.mktemp("covers")
    source = f"dir:{tiny_embedder_folder}"
    with serving_books(
        folder / "books.db",
        model__source=source,
        store__catalogue=False,
        threads=2,
        cover__slots=2,
        cover__read_s=60.0,
    ) as shop:
        shop.server.store.upsert(shipped_documents())
        yield shop


def ask(shop: Shop, picture: Any, **more: Any) -> dict[str, Any]:
    """The answer to a cover that can be read."""
    answer = shop.ask("POST", PATH, content=filed(picture, **more), headers=JPEG)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_cover_is_read_and_its_book_is_told_with_how(library: Shop) -> None:
    before = library.metric("books_covers_total", found="ocr")
    picture = filed(cover(Words("소년이 온다", "한강", "창비")))
    answer = library.ask("POST", PATH, content=picture, headers=JPEG)
    body = answer.json()
    assert (body["found"], body["why"], body["degraded"]) == ("ocr", "", [])
    (book,) = body["books"]
    assert book["document"]["title"] == "소년이 온다"
    assert book["score"] > 0.9
    assert {"by": "ocr", "text": "소년이 온다"} in body["read"]
    assert body["picture"] == {"format": "jpeg", "width": 600, "height": 880, "turned": 0}
    assert body["tokens"] == {"calls": 0, "prompt": 0, "completion": 0, "reasoning": 0}
    parts = [entry.split(";")[0] for entry in answer.headers["server-timing"].split(", ")]
    way = ["parse", "admit", "wait", "batch", "decode", "detect", "recognise", "match"]
    assert parts == [*way, "handover", "serialize", "total"]
    assert library.metric("books_covers_total", found="ocr") == before + 1
    assert library.metric("books_answered_total", door="cover", outcome="done") >= 1


def test_of_covers_in_many_layouts_and_states_most_are_found_and_none_is_taken_for_another(
    library: Shop,
) -> None:
    """Every layout and every way of being spoilt: noise, perspective, turned without a tag."""
    dice = random.Random(12)
    ways = [(layout, spoil) for layout in LAYOUTS for spoil in SPOILS][::2]
    books = dice.sample(shipped_documents(), len(ways))

    def tried(number: int) -> str:
        book, (layout, spoil) = books[number], ways[number]
        words = Words(book.title, book.author or "", book.publisher or "")
        body = ask(library, cover(words, layout, spoil, seed=number))
        if body["found"] == "needs_input":
            assert body["books"] == []
            return f"needs input: {layout} {spoil} {book.title} {body['read']}"
        found = body["books"][0]["document"]["title"]
        return "right" if letters(found) == letters(book.title) else f"{book.title} as {found}"

    with ThreadPoolExecutor(2) as callers:
        ends = list(callers.map(tried, range(len(ways))))
    wrong = [end for end in ends if end != "right" and not end.startswith("needs input")]
    assert wrong == []
    share = ends.count("right") / len(ends)
    assert share >= SHARE_FOUND, ends


def test_a_picture_that_its_tag_turns_is_read_upright(library: Shop) -> None:
    lying = cover(Words("노르웨이의 숲", "무라카미 하루키")).rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    body = ask(library, lying, exif=exif)
    assert body["books"][0]["document"]["title"] == "노르웨이의 숲"
    assert body["picture"] == {"format": "jpeg", "width": 600, "height": 880, "turned": 0}


def test_a_picture_that_stands_on_its_head_is_turned_until_it_can_be_read(library: Shop) -> None:
    body = ask(library, cover(Words("호밀밭의 파수꾼", "J. D. 샐린저"), spoil="turned 180"))
    assert body["books"][0]["document"]["title"] == "호밀밭의 파수꾼"
    assert body["picture"]["turned"] == 180


def test_a_picture_without_a_word_needs_input(library: Shop) -> None:
    body = ask(library, busy(random.Random(3)))
    assert (body["found"], body["books"], body["near"]) == ("needs_input", [], [])
    assert body["why"] in {"no-text", "no-match"}


@pytest.mark.parametrize("words", FOREIGN[5:7], ids=lambda words: words.title)
def test_another_volume_than_the_catalogues_needs_input(library: Shop, words: Words) -> None:
    body = ask(library, cover(words))
    assert (body["found"], body["books"]) == ("needs_input", [])


@pytest.mark.parametrize("words", FOREIGN, ids=lambda words: words.title)
def test_a_book_that_the_catalogue_does_not_hold_is_not_taken_for_one_that_it_does(
    library: Shop, words: Words
) -> None:
    """Even read without a mistake, which is the hardest case."""
    lines = [*(ReadLine(word, 80.0) for word in words.title.split()), ReadLine(words.author, 40.0)]
    assert match(library.server.store, lines).books == ()


def test_read_without_a_mistake_nearly_every_book_is_found(library: Shop) -> None:
    books = random.Random(4).sample(shipped_documents(), 120)
    missed = []
    for book in books:
        lines = [ReadLine(book.title, 80.0), ReadLine(f"{book.author or ''} 지음", 40.0)]
        found = match(library.server.store, lines).books
        if not found or letters(found[0].document.title) != letters(book.title):
            missed.append((book.title, book.author))
    assert len(missed) <= 0.03 * len(books), missed


def test_all_editions_of_the_one_work_are_told(library: Shop) -> None:
    body = ask(library, cover(Words("호밀밭의 파수꾼", "J. D. 샐린저")))
    assert len(body["books"]) == 2


def test_openapi_says_that_the_body_is_a_picture(library: Shop) -> None:
    about = library.ask("GET", "/api/openapi.json").json()["paths"][PATH]["post"]
    assert set(about["requestBody"]["content"]) == {"image/jpeg", "image/png", "image/webp"}
    told = about["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert set(told) == set(ask(library, busy(random.Random(3))))


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b'{"image": "..."}', "application/json", 415, "wrong-picture-type"),
        (b"GIF89a" + bytes(40), "image/gif", 415, "wrong-picture-type"),
        (b"GIF89a" + bytes(40), "image/png", 415, "wrong-picture-type"),
        (b"", "image/jpeg", 415, "wrong-picture-type"),
        (filed(cover(Words("가")))[:3000], "image/jpeg", 422, "bad-picture"),
        (filed(Image.new("RGB", (16, 16))), "image/jpeg", 422, "bad-picture"),
        (filed(Image.new("RGB", (3000, 100))), "image/jpeg", 422, "bad-picture"),
        (
            filed(Image.new("1", (9000, 6000)), "PNG"),
            "image/png",
            413,
            "picture-too-large",
        ),
        (b"\xff\xd8\xff" + bytes(11 << 20), "image/jpeg", 413, "too-large"),
    ],
)
def test_what_is_no_cover_is_refused_by_name(
    library: Shop, content: bytes, kind: str, status: int, code: str
) -> None:
    answer = library.ask("POST", PATH, content=content, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert library.search("소년이 온다")["hits"]
