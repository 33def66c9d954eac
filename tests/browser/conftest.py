"""A real browser on a real box.

The page's content security policy stays in force except where axe is put in.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from books_guest import BookGuest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright
from review_guest import Guest

from bookshops import Shop, serving_books
from boxes import serving
from talking import Library, library

NAMES = ("chromium", "chromium-browser", "google-chrome")
SERVICE_S = 0.12
"""Long enough for a line to form."""
expect.set_options(timeout=30_000)
"""For machines that are slower than the one this was written on; who expects right stops at once."""
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-default-apps",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.browser)
    # Last, because playwright leaves an event loop running in the main thread as long as it lives.
    items[:] = [item for item in items if item not in ours] + ours


@pytest.fixture(scope="session")
def box_url() -> Iterator[str]:
    """Where a box listens whose model only takes its time."""
    with serving(seconds=SERVICE_S) as served:
        yield served.url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium fonts-noto-cjk)")
    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGS)
        yield found
        found.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 860}, locale="ko-KR")
    yield made
    made.close()


@pytest.fixture
def guest(context: BrowserContext, box_url: str) -> Guest:
    return Guest(context.new_page(), box_url)


@pytest.fixture(scope="session")
def after_limited(browser: Browser, box_url: str) -> Iterator[tuple[Guest, list[dict[str, Any]]]]:
    """Send twelve through the limited door once, for tests that only read."""
    made = browser.new_context(viewport={"width": 1280, "height": 860}, locale="ko-KR")
    somebody = Guest(made.new_page(), box_url).open()
    lines = somebody.send()
    yield somebody, lines
    made.close()


SHELVES = ("소설/한국", "소설/외국", "과학", "시")
BOOKS = [
    {"id": "a1", "title": "고래 이야기", "author": "하주", "category": "소설/한국", "year": 1999},
    {"id": "a2", "title": "하늘 아이", "author": "나나", "category": "과학", "year": 2020},
    {"id": "a3", "title": "<b>바다</b> & <script>", "author": "Ann Lee", "category": "시"},
] + [
    {
        "id": f"b{number:02}",
        "title": f"바다 {number}",
        "author": "하주",
        "category": SHELVES[number % 4],
        "year": 1980 + number,
        "description": "바다 사나이와 아이가 나오는 글.",
    }
    for number in range(24)
]
"""What is in the shop: enough for three pages, and a title that wants to be markup."""


@pytest.fixture(scope="session")
def bookshop(
    tmp_path_factory: pytest.TempPathFactory, tiny_embedder_folder: Path
) -> Iterator[Shop]:
    """A book service over a tiny model, without a language model."""
    with serving_books(
        tmp_path_factory.mktemp("shop") / "books.db",
        model__source=f"dir:{tiny_embedder_folder}",
        store__catalogue=False,
        threads=2,
        cover__read_s=60.0,
    ) as shop:
        assert shop.ask("POST", "/api/books/documents", json={"documents": BOOKS}).is_success
        yield shop


@pytest.fixture
def books(context: BrowserContext, bookshop: Shop) -> BookGuest:
    return BookGuest(context.new_page(), bookshop.url)


@pytest.fixture(scope="session")
def talking_shop(
    tmp_path_factory: pytest.TempPathFactory, tiny_embedder_folder: Path
) -> Iterator[Library]:
    """A book service with a scripted language model behind it, whose turns have two cards."""
    folder = tmp_path_factory.mktemp("talking")
    with library(folder, tiny_embedder_folder, turn__cards=2) as made:
        yield made


@pytest.fixture(name="library")
def _library(talking_shop: Library) -> Library:
    talking_shop.well()
    return talking_shop


@pytest.fixture
def talker(context: BrowserContext, library: Library) -> BookGuest:
    return BookGuest(context.new_page(), library.shop.url)
