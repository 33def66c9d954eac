"""Everybody: axe in both languages, colours and three widths; the keyboard alone; no colour."""

import pytest
from playwright.sync_api import expect
from review_guest import AXE, Guest

WIDTHS = (360, 768, 1280)
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
}


@pytest.fixture(scope="module")
def audited(browser, box_url):
    """Fill a page with content, with the policy lifted so that axe can be put in."""
    made = browser.new_context(
        bypass_csp=True, locale="ko-KR", viewport={"width": 1280, "height": 900}
    )
    guest = Guest(made.new_page(), box_url).open(n=6)
    guest.send()
    guest.page.check("#door-batched")
    guest.send()
    guest.page.locator("#rows .review").first.click()
    guest.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    yield guest.page
    made.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["ko", "en"])
def test_axe_finds_nothing(audited, lang, scheme):
    audited.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    if audited.locator("html").get_attribute("lang") != lang:
        audited.click("#lang")
        audited.wait_for_selector(f"html[lang={lang}]")
    for width in WIDTHS:
        audited.set_viewport_size({"width": width, "height": 900})
        found = audited.evaluate("rules => axe.run(rules)", RULES)["violations"]
        told = [
            (v["id"], [(n["html"][:120], n["failureSummary"]) for n in v["nodes"][:3]])
            for v in found
        ]
        assert told == [], f"{lang} {scheme} {width}"


@pytest.mark.parametrize("lang", ["ko", "en"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(audited, lang, width):
    if audited.locator("html").get_attribute("lang") != lang:
        audited.click("#lang")
        audited.wait_for_selector(f"html[lang={lang}]")
    audited.set_viewport_size({"width": width, "height": 900})
    assert audited.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


SHOWS_FOCUS = """
    [document.activeElement, document.activeElement.parentElement,
     document.activeElement.nextElementSibling]
    .some(n => n && getComputedStyle(n).outlineStyle !== "none")
"""


def focused(page) -> str:
    """Say what has the focus; nothing if it fell back to the page."""
    return page.evaluate(
        "(n => n === document.body ? '' : n.id || n.name || n.className || n.tagName)"
        "(document.activeElement)"
    )


def test_the_keyboard_reaches_everything(guest: Guest):
    page = guest.open(n=2).page
    guest.send()
    page.locator("body").evaluate(
        "n => { n.tabIndex = -1; n.focus(); n.removeAttribute('tabindex') }"
    )
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = focused(page)
        assert name, f"focus was lost after {seen[-3:]}"
        seen.append(name)
        outline = page.evaluate(SHOWS_FOCUS)
        assert outline, f"{name} shows no focus"
        if name == "pause":
            break
    wanted = [
        "skip",
        "lang",
        "theme",
        "help-open",
        "door-limited",
        "n",
        "shuffle",
        "replay",
        "send",
    ]
    for name in [*wanted, "csv", "json", "link", "review", "small", "pause"]:
        assert name in seen, f"{name} cannot be reached: {seen}"


def test_a_crowd_with_the_keyboard_alone(guest: Guest):
    page = guest.open(n=2).page
    page.keyboard.press("3")
    expect(page.locator("#door-batched")).to_be_checked()
    page.keyboard.press("g")
    page.wait_for_selector("#rows > tr")
    guest.wait()
    page.locator("#rows .review").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 1
    assert page.locator("#rows .review").first.get_attribute("aria-expanded") == "true"
    page.keyboard.press("p")
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.uncheck("#keys-on")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator("#door-batched")).to_be_checked()


def test_keys_are_letters_while_somebody_writes(guest: Guest):
    page = guest.open().page
    page.check("input[name=source][value=typed]", force=True)
    page.focus("#typed")
    page.keyboard.type("gr1")
    assert page.input_value("#typed") == "gr1"
    expect(page.locator("#door-limited")).to_be_checked()


def test_it_reads_without_colour(after_limited):
    """Wait is hatched, inference is solid, a refusal is text: none of them hangs on a colour."""
    guest, _ = after_limited
    look = "n => getComputedStyle(n).backgroundImage"
    row = guest.page.locator("#rows > tr[data-fate=answered]").nth(2)
    assert "repeating-linear-gradient" in row.locator(".seg.wait").evaluate(look)
    assert row.locator(".seg.infer").evaluate(look) == "none"
    assert guest.page.locator(".legend li").count() == 5
    assert "429" in guest.page.locator("#rows > tr[data-fate=refused] .answer").first.inner_text()


def test_the_summary_is_announced(after_limited):
    guest, _ = after_limited
    guest.page.wait_for_selector("#announce:not(:empty)", state="attached")
    assert guest.page.locator("#announce").get_attribute("aria-live") == "polite"


def test_dark_can_be_chosen_and_stays(guest: Guest):
    page = guest.open().page
    for _ in range(3):
        if page.locator("html").get_attribute("data-theme") == "dark":
            break
        page.click("#theme")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
