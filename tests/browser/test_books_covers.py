"""The book page, by cover: chosen, dropped or pasted, and read by whatever reads covers here."""

import importlib.util
import json
import os
import shutil
from typing import Any

import pytest
from books_guest import BookGuest, refuse
from playwright.sync_api import Page, expect

READS = bool(importlib.util.find_spec("rapidocr") and shutil.which("tesseract"))
COVER = "**/api/books/cover"
PNG = b"\x89PNG\r\n\x1a\n"
GIVE = """
([way, name, type, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type }));
  const made = way === "paste"
    ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent(way, { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector("#q").dispatchEvent(made);
}
"""


def give(page: Page, way: str, type_: str = "image/png", data: bytes = PNG) -> None:
    """Paste or drop a picture."""
    page.evaluate(GIVE, [way, "cover.png", type_, list(data)])


def answer(found: str = "ocr", **more: Any) -> dict[str, Any]:
    """An answer as the service gives it."""
    book = {"id": "a1", "title": "고래 이야기", "author": "하주", "category": "소설/한국"}
    match = {"id": "a1", "score": 0.97, "title": 1.0, "author": 0.9, "document": book}
    books = [match] if found != "needs_input" else []
    read = [{"by": "ocr", "text": "고래 이야기"}, {"by": "ocr", "text": "<b>하주</b>"}]
    made = {"found": found, "why": "", "degraded": [], "books": books, "near": [match]}
    return {**made, "read": read, **more}


@pytest.fixture
def reads(books: BookGuest) -> BookGuest:
    """A page whose service says that it reads covers, whatever is installed here."""

    def told(route):
        stats = route.fetch()
        takes = {"offered": True, "types": ["image/jpeg", "image/png"], "body_max_bytes": 4096}
        route.fulfill(response=stats, json={**stats.json(), "cover": takes})

    books.page.route("**/api/books/stats", told)
    return books.look()


def test_a_service_that_reads_no_covers_shows_no_way_in(books: BookGuest):
    books.page.route(
        "**/api/books/stats",
        lambda route: route.fulfill(
            json={
                "documents": 1,
                "spaces": [],
                "categories": {},
                "turn": None,
                "cover": {"offered": False},
            }
        ),
    )
    books.look()
    expect(books.page.locator("#cover-open")).to_be_hidden()
    give(books.page, "paste")
    expect(books.page.locator("#cover")).to_be_hidden()


@pytest.mark.parametrize("way", ["choose", "paste", "drop"])
def test_a_picture_goes_out_as_it_is_and_its_book_comes_back(reads: BookGuest, way: str):
    page = reads.page
    sent = []

    def found(route):
        sent.append((route.request.headers["content-type"], route.request.post_data_buffer))
        route.fulfill(json=answer())

    page.route(COVER, found)
    if way == "choose":
        picture = {"name": "c.png", "mimeType": "image/png", "buffer": PNG}
        page.on("filechooser", lambda chooser: chooser.set_files(picture))
        page.focus("#cover-open")
        page.keyboard.press("Enter")
        expect(page.locator("#cover-pick")).to_be_focused()
        page.keyboard.press("Enter")
    else:
        give(page, way)
    expect(page.locator(".cover-outcome[data-found=ocr] b")).to_have_text("고래 이야기")
    assert sent == [("image/png", PNG)]
    assert page.locator("#cover-said b").count() == 1, "what was read is no markup"
    page.locator(".cover-outcome .near-one").click()
    expect(page.locator("#q")).to_have_value("고래 이야기")
    expect(page.locator("#hits h3").first).to_contain_text("고래 이야기")


def test_what_only_a_person_can_say_is_asked_for(reads: BookGuest):
    body = answer("needs_input", why="ambiguous", degraded=["vlm-capped"])
    reads.page.route(COVER, lambda route: route.fulfill(json=body))
    give(reads.page, "drop")
    outcome = reads.page.locator(".cover-outcome[data-found=needs_input]")
    expect(outcome).to_contain_text("골라 주세요")
    expect(outcome.locator(".note[data-code=vlm-capped]")).to_be_visible()
    expect(outcome.locator(".near-one")).to_have_count(1)
    outcome.get_by_role("button", name="읽은 글로 찾기").click()
    expect(reads.page.locator("#q")).to_have_value("고래 이야기 <b>하주</b>")


def test_wrong_and_huge_files_are_told_without_asking(reads: BookGuest):
    page = reads.page
    reads.requests.clear()
    give(page, "drop", "application/pdf")
    expect(page.locator("#cover-said")).to_contain_text("JPEG, PNG, WebP")
    give(page, "drop", data=PNG * 1000)
    expect(page.locator("#cover-said")).to_contain_text("너무 큽니다")
    assert not [url for url in reads.requests if url.endswith("/cover")]


def test_a_refused_cover_is_counted_down_and_read_after_all(reads: BookGuest):
    asked = []

    def once(route):
        asked.append(1)
        if len(asked) == 1:
            refuse(route, ms=3000)
        else:
            route.fulfill(status=415, body=json.dumps({"code": "wrong-picture-type"}))

    reads.page.route(COVER, once)
    give(reads.page, "paste")
    expect(reads.page.locator("#cover-said .countdown")).to_be_visible()
    expect(reads.page.locator("#cover-said .end")).to_contain_text("JPEG, PNG, WebP")
    assert len(asked) == 2


@pytest.mark.skipif(
    not READS and not os.environ.get("TAILRACE_CI"), reason="nothing reads covers here"
)
def test_a_cover_is_really_read(books: BookGuest):
    from cover_pictures import Words, cover, filed

    page = books.look().page
    expect(page.locator("#cover-open")).to_be_visible()
    give(page, "drop", "image/jpeg", filed(cover(Words("고래 이야기", "하주", "바다"))))
    outcome = page.locator(".cover-outcome")
    expect(outcome).to_be_visible(timeout=60_000)
    expect(outcome).to_have_attribute("data-found", "ocr")
    expect(outcome.locator("b")).to_have_text("고래 이야기")
    expect(outcome.locator(".part[data-part=recognise]")).to_have_count(1)
