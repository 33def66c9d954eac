"""Two languages, the same keys, no sentence joined from pieces."""

import json
import re
from pathlib import Path

import tailrace.apps.review

PAGE = Path(tailrace.apps.review.__file__).parent / "page"
BOOKS = {
    lang: json.loads((PAGE / "i18n" / f"{lang}.json").read_text(encoding="utf-8"))
    for lang in ("ko", "en")
}


def test_both_languages_have_the_same_keys_and_holes():
    ko, en = BOOKS["ko"], BOOKS["en"]
    assert ko.keys() == en.keys()
    for key in ko:
        assert set(re.findall(r"\{\w+\}", ko[key])) == set(re.findall(r"\{\w+\}", en[key])), key


def test_every_word_the_page_asks_for_exists():
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    asked = set(re.findall(r'data-t(?:-[\w-]+)?="([^"]+)"', html))
    for script in PAGE.glob("*.js"):
        asked |= set(re.findall(r'\bt\("([^"]+)"', script.read_text(encoding="utf-8")))
    assert asked <= BOOKS["ko"].keys(), asked - BOOKS["ko"].keys()


def test_no_korean_particle_follows_a_hole_directly():
    """A particle depends on the sound before it, so a unit or a fixed word has to stand between."""
    for key, text in BOOKS["ko"].items():
        assert not re.search(r"\{\w+\}(은|는|이|가|을|를|과|와|으로|로)\b", text), f"{key}: {text}"


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
