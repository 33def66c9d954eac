"""The book page for everybody: axe in both languages and colours at three widths; keyboard; policy."""

import re
from urllib.parse import urlsplit

import httpx
import pytest
from books_guest import SEARCH, BookGuest, refuse
from playwright.sync_api import expect
from review_guest import AXE
from test_access import RULES, SHOWS_FOCUS, WIDTHS, focused

from talking import Library
from upstream import Step

SIDE_BY_SIDE = 1020
"""From this width on both columns are seen."""


@pytest.fixture(scope="module")
def audited(browser, talking_shop: Library):
    """A page full of everything, with the policy lifted so that axe can be put in."""
    made = browser.new_context(
        bypass_csp=True, locale="ko-KR", viewport={"width": 1280, "height": 900}
    )
    talking_shop.well()
    guest = BookGuest(made.new_page(), talking_shop.shop.url).look(q="바다")
    page = guest.page
    page.check("#legs")
    page.locator("#hits [data-do=similar]").first.click()
    page.locator("#parts summary").click()
    for step in (talking_shop.reasons, Step(status=500)):
        talking_shop.reasons = step
        page.fill("#say", "바다 이야기 추천해 줘")
        page.press("#say", "Enter")
        page.wait_for_selector("#stop", state="hidden")
    page.click("#shelf-count")
    page.locator(".near-one").first.wait_for()
    page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    yield page
    made.close()


def told_by_axe(page) -> list:
    found = page.evaluate("rules => axe.run(rules)", RULES)["violations"]
    return [
        (v["id"], [(n["html"][:120], n["failureSummary"]) for n in v["nodes"][:3]]) for v in found
    ]


def speak(page, lang: str) -> None:
    if page.locator("html").get_attribute("lang") != lang:
        page.click("#lang")
        page.wait_for_selector(f"html[lang={lang}]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["ko", "en"])
def test_axe_finds_nothing_on_the_book_page(audited, lang, scheme):
    audited.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    speak(audited, lang)
    for width in WIDTHS:
        audited.set_viewport_size({"width": width, "height": 900})
        for view in ("seek", "talk") if width < SIDE_BY_SIDE else ("seek",):
            audited.locator(f"input[name=view][value={view}]").dispatch_event("change")
            assert told_by_axe(audited) == [], f"{lang} {scheme} {width} {view}"
            assert audited.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_axe_finds_nothing_where_it_is_refused_or_empty(audited):
    audited.set_viewport_size({"width": 1280, "height": 900})
    audited.route(SEARCH, lambda route: refuse(route, ms=60_000))
    audited.fill("#q", "하늘")
    audited.wait_for_selector("#notice[data-kind=refused]")
    assert told_by_axe(audited) == []
    audited.fill("#q", "")
    expect(audited.locator("#examples")).to_be_visible()
    assert told_by_axe(audited) == []
    audited.unroute(SEARCH)


def test_the_book_page_obeys_a_strict_policy(bookshop):
    answer = httpx.get(f"{bookshop.url}/books")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"\sstyle=|<style|\son\w+=|<script(?![^>]*\ssrc=)", answer.text)
    again = httpx.get(f"{bookshop.url}/page/shared/dom.js")
    assert again.headers["cache-control"] == "no-cache"


def test_nobody_outside_is_asked_and_the_console_is_quiet(talker: BookGuest):
    talker.page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " e => console.error('policy', e.violatedDirective))"
    )
    page = talker.look(q="바다").page
    page.check("#legs")
    page.locator("#hits [data-do=similar]").first.click()
    page.locator(".near-one").first.wait_for()
    page.fill("#say", "바다")
    page.press("#say", "Enter")
    page.wait_for_selector(".turn[data-phase=done]")
    page.click("#theme")
    page.click("#lang")
    page.wait_for_selector("html[lang=en]")
    assert talker.complaints == []
    hosts = {urlsplit(url).netloc for url in talker.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(talker.url).netloc}


def test_titles_that_want_to_be_markup_stay_text(books: BookGuest):
    page = books.look(q="script").page
    expect(page.locator("#hits h3").first).to_contain_text("<b>바다</b> & <script>")
    assert page.locator("#hits script, #hits b").count() == 0


def test_the_keyboard_reaches_everything_on_the_book_page(books: BookGuest):
    page = books.look(q="바다").page
    page.locator("body").evaluate(
        "n => { n.tabIndex = -1; n.focus(); n.removeAttribute('tabindex') }"
    )
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = focused(page)
        assert name, f"focus was lost after {seen[-3:]}"
        seen.append(name)
        assert page.evaluate(SHOWS_FOCUS), f"{name} shows no focus"
        if name == "send":
            break
    wanted = ["skip", "lang", "theme", "help-open", "q", "go", "category", "author"]
    for name in [*wanted, "year_from", "year_to", "legs", "small", "after", "say", "send"]:
        assert name in seen, f"{name} cannot be reached: {seen}"


def test_searching_with_the_keyboard_alone(books: BookGuest):
    page = books.look(q="바다").page
    page.locator("body").press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").first.locator("button").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(1).locator("button").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".hit").nth(1).locator(".legs")).to_be_visible()
    page.keyboard.press("w")
    expect(page.locator("#legs")).to_be_checked()
    page.keyboard.press("n")
    expect(page.locator("#place")).to_contain_text("2")
    books.answered()
    page.keyboard.press("t")
    expect(page.locator("#say")).to_be_focused()
    page.keyboard.type("/w")
    assert page.input_value("#say") == "/w", "keys are letters while somebody writes"


def test_less_motion_is_no_motion(talker: BookGuest, library: Library):
    page = talker.page
    page.emulate_media(reduced_motion="reduce")
    talker.look(q="바다")
    for selector in (".hits", ".box"):
        look = page.locator(selector).first.evaluate("n => getComputedStyle(n).transitionProperty")
        assert look == "none"
