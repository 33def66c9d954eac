"""Two languages, the same keys, no sentence joined from pieces; for every page there is."""

import json
import re
from pathlib import Path

import pytest

import tailrace.apps.books
import tailrace.apps.review
import tailrace.serve

SHARED = Path(tailrace.serve.__file__).parent / "page"
PAGES = [Path(app.__file__).parent / "page" for app in (tailrace.apps.review, tailrace.apps.books)]
every_page = pytest.mark.parametrize("page", PAGES, ids=["review", "books"])


def words(page: Path, lang: str) -> dict[str, str]:
    """All words that a page has in one language: those of every page, then its own."""
    made: dict[str, str] = {}
    for folder in (SHARED, page):
        made |= json.loads((folder / "i18n" / f"{lang}.json").read_text(encoding="utf-8"))
    return made


@every_page
def test_both_languages_have_the_same_keys_and_holes(page):
    ko, en = words(page, "ko"), words(page, "en")
    assert ko.keys() == en.keys()
    for key in ko:
        assert set(re.findall(r"\{\w+\}", ko[key])) == set(re.findall(r"\{\w+\}", en[key])), key


@every_page
def test_every_word_the_page_asks_for_exists(page):
    html = (page / "index.html").read_text(encoding="utf-8")
    asked = set(re.findall(r'data-t(?:-[\w-]+)?="([^"]+)"', html))
    for script in [*page.glob("*.js"), *SHARED.glob("*.js")]:
        asked |= set(re.findall(r'\bt\("([^"]+)"', script.read_text(encoding="utf-8")))
    assert asked <= words(page, "ko").keys(), asked - words(page, "ko").keys()


@every_page
def test_no_korean_particle_follows_a_hole_directly(page):
    """A particle depends on the sound before it, so a unit or a fixed word has to stand between."""
    for key, text in words(page, "ko").items():
        assert not re.search(r"\{\w+\}(은|는|이|가|을|를|과|와|으로|로)\b", text), f"{key}: {text}"


def test_no_page_has_a_word_that_every_page_has():
    shared = json.loads((SHARED / "i18n" / "ko.json").read_text(encoding="utf-8")).keys()
    for page in PAGES:
        own = json.loads((page / "i18n" / "ko.json").read_text(encoding="utf-8")).keys()
        assert not shared & own


def test_switching_the_language_switches_lang_and_stays(after_limited):
    guest, _ = after_limited
    page = guest.page
    assert page.locator("html").get_attribute("lang") == "ko"
    page.click("#lang")
    page.wait_for_selector("html[lang=en]")
    assert "Twelve guests" in page.locator("h1").inner_text()
    assert "answered 5" in page.locator("#run-line").inner_text()
    assert "lang=en" in page.url
    page.click("#lang")
    page.wait_for_selector("html[lang=ko]")
    assert "손님은 열둘" in page.locator("h1").inner_text()
