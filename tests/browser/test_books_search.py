"""The book page, searching: as you type, in order, with everything that the answer says of itself."""

import re
import threading

import pytest
from books_guest import SEARCH, BookGuest, Composing, refuse
from playwright.sync_api import expect


def test_the_root_leads_to_the_page(books: BookGuest):
    books.page.goto(f"{books.url}/")
    books.page.wait_for_selector("html[data-ready=true]")
    assert books.page.url.startswith(f"{books.url}/books")


def test_it_searches_while_you_type_and_asks_little(books: BookGuest):
    books.look().type("고래 이야기")
    expect(books.page.locator("#hits h3").first).to_contain_text("고래 이야기")
    books.answered()
    assert len(books.searches()) <= 2, "not one for every letter"


def test_an_older_answer_never_overwrites_a_newer_one(books: BookGuest, bookshop):
    page = books.look().page
    held = threading.Event()
    kept = []

    def first_late(route):
        if "q=%ED%95%98" in route.request.url and not held.is_set():  # 하…
            kept.append(route)
            held.set()
        else:
            route.continue_()

    page.route(SEARCH, first_late)
    books.type("하늘")
    while not kept:
        page.wait_for_timeout(20)
    page.fill("#q", "고래 이야기")
    expect(page.locator("#hits h3").first).to_contain_text("고래 이야기")
    stale = {**bookshop.search("하늘"), "q": "하늘"}
    kept[0].fulfill(json=stale, headers={"server-timing": "total;dur=1"})
    page.wait_for_timeout(100)
    expect(page.locator("#hits h3").first).to_contain_text("고래 이야기")
    expect(page.locator("#notice")).to_be_hidden()


def test_half_a_syllable_is_not_searched_and_enter_ends_the_composition(books: BookGuest):
    page = books.look().page
    page.focus("#q")
    ime = Composing(page)
    for text in ("ㅂ", "바", "받"):
        ime.to(text)
    ime.end("바")
    for text in ("ㄷ", "다"):
        ime.to(text)
    page.wait_for_timeout(60)
    assert books.searches() == [], "nothing while the letters still come"
    page.wait_for_selector("#hits h3")
    assert len(books.searches()) == 1, "a pause is enough; nobody has to end the composition"
    ime.end("다")
    ime.to("ㅇ")
    page.wait_for_timeout(700)
    assert len(books.searches()) == 1, "a letter that is no syllable yet asks nothing new"
    ime.to("이")
    ime.end("이")
    page.keyboard.press("Enter")
    while len(books.searches()) < 2:
        page.wait_for_timeout(20)
    page.wait_for_timeout(50)
    assert len(books.searches()) == 2


def test_hits_tell_both_legs_on_demand_and_their_shares_add_up(books: BookGuest):
    page = books.look(q="고래 이야기").page
    assert page.locator(".legs").count() == 0
    page.locator("#hits [data-do=legs]").first.click()
    assert page.locator(".legs").count() == 1
    page.check("#legs")
    assert page.locator(".legs").count() == page.locator(".hit").count()
    for row in page.locator(".hit").all():
        adds = [float(n.get_attribute("data-adds")) for n in row.locator(".leg").all()]
        told = float(row.locator(".legs .sum td").last.inner_text())
        assert sum(adds) == pytest.approx(told, abs=1e-4)
        assert re.search(r"\d위", row.locator("tr[data-leg=vector]").inner_text())


def test_the_bar_of_parts_adds_up_to_the_whole(books: BookGuest):
    page = books.look(q="바다").page
    parts = page.locator("#parts .part")
    whole = page.locator("#parts .parts-bar").evaluate("n => n.getBoundingClientRect().width")
    widths = [n.evaluate("n => n.getBoundingClientRect().width") for n in parts.all()]
    assert sum(widths) == pytest.approx(whole, rel=0.01)
    page.locator("#parts summary").click()
    expect(page.locator("#parts tr")).to_have_count(parts.count() + 1)


def test_filters_and_pages_stand_in_the_address(books: BookGuest):
    page = books.look(q="바다").page
    seen = books.titles()
    page.click("#after")
    expect(page.locator("#place")).to_contain_text("2")
    books.answered()
    assert not set(seen) & set(books.titles()), "pages do not repeat"
    page.select_option("#category", "과학")
    expect(page.locator(".hit .shelf").filter(has_not_text="과학")).to_have_count(0)
    books.answered()
    assert set(page.locator(".hit .shelf").all_inner_texts()) == {"과학"}
    assert "page=" not in page.url, "another search begins at its first page"
    page.fill("#year_from", "2011")
    expect(page.locator(".hit")).to_have_count(1)
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    books.answered()
    assert page.input_value("#year_from") == "2011"
    assert page.input_value("#category") == "과학"
    expect(page.locator(".hit")).to_have_count(1)
    page.click("#clear")
    expect(page.locator("#clear")).to_be_hidden()
    assert page.input_value("#author") == page.input_value("#category") == ""


def test_what_cannot_be_found_is_said_in_words(books: BookGuest):
    page = books.look(q="바다", page=40).page
    expect(page.locator("#count")).to_contain_text("이 쪽에는 책이 없습니다")
    page.click("#before")
    expect(page.locator(".hit").first).to_be_visible()
    assert page.locator("#after").is_disabled(), "back from beyond the end is to the end"
    page.goto(f"{books.url}/books#q=바다&category=없는 분야&lang=ko")
    expect(page.locator("#notice[data-kind=failed]")).to_contain_text("그런 분야는 없습니다")


def test_similar_books_come_on_demand_and_can_be_followed(books: BookGuest):
    page = books.look(q="고래 이야기").page
    page.locator("#hits [data-do=similar]").first.click()
    first = page.locator(".near-one b").first
    title = first.inner_text()
    first.click()
    expect(page.locator("#q")).to_have_value(title)
    expect(page.locator("#hits h3").first).to_contain_text(title)


def test_a_degraded_answer_is_marked_and_says_why(books: BookGuest, bookshop):
    with bookshop.model_held():
        books.look(q="하늘에서 온")
        badge = books.page.locator("#mode")
        expect(badge).to_have_attribute("data-mode", "degraded")
        expect(books.page.locator("#why")).to_contain_text("키워드로만")
        assert books.titles()
    books.page.fill("#q", "하늘에서 오는")
    expect(badge).to_have_attribute("data-mode", "hybrid")
    expect(books.page.locator("#why")).to_be_hidden()


def test_a_refusal_is_counted_down_and_obeyed(books: BookGuest):
    page = books.page
    asked = []

    def once(route):
        asked.append(route.request.url)
        if len(asked) == 1:
            refuse(route, ms=3000)
        else:
            route.continue_()

    page.route(SEARCH, once)
    page.goto(f"{books.url}/books#q=고래&lang=ko")
    expect(page.locator("#notice[data-kind=refused] .countdown")).to_contain_text("초 뒤에")
    page.fill("#q", "")
    books.type("고래 이야기")
    page.wait_for_timeout(400)
    expect(page.locator("#notice .countdown")).to_be_visible()
    assert len(asked) == 1, "nothing before the time that was named, whatever is typed"
    books.answered()
    expect(page.locator("#notice")).to_be_hidden()
    assert len(asked) == 2
    expect(page.locator("#hits h3").first).to_contain_text("고래 이야기")


def test_a_service_that_is_gone_is_said_and_asked_again_by_hand(books: BookGuest):
    page = books.look(lang="en").page
    page.route(SEARCH, lambda route: route.abort())
    books.type("바다")
    expect(page.locator("#notice[data-kind=failed]")).to_contain_text("does not answer")
    page.unroute(SEARCH)
    page.click("#notice button")
    books.answered()
    assert books.titles()
