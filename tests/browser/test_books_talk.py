"""The book page, recommending: the stream as it comes, its clocks, how it is stopped, what is kept."""

import json
import re
from typing import Any

import pytest
from books_guest import BookGuest, refuse
from playwright.sync_api import expect

from talking import REASONS, Library, written
from upstream import Step

TURN = "**/api/books/recommend"
SHORTS, LONGS = ([REASONS[f"{kind}_{number}"] for number in (1, 2)] for kind in ("short", "long"))


def slowly(between_s: float, *, size: int = 3, **more: Any) -> Step:
    """The reasons, so that somebody can watch."""
    text = json.dumps(REASONS | more, ensure_ascii=False)
    return Step(pieces=written(text, size=size), between_s=between_s)


def say(guest: BookGuest, words: str = "바다 이야기 추천해 줘") -> None:
    guest.page.fill("#say", words)
    guest.page.press("#say", "Enter")


def texts(guest: BookGuest, kind: str) -> list[str]:
    return guest.page.locator(f".turn .reason.{kind}").all_inner_texts()


def test_a_turn_comes_as_a_stream_short_reasons_first(talker: BookGuest, library: Library):
    page = talker.look().page
    library.reasons = slowly(0.03)
    say(talker)
    expect(page.locator(".turn .card")).to_have_count(2)
    page.wait_for_selector(".reason.short[data-state=done] >> nth=1")
    assert page.locator(".reason.long[data-state=done]").count() < 2, "long ones are still written"
    page.wait_for_selector(".turn[data-phase=done]")
    assert texts(talker, "short") == SHORTS
    assert texts(talker, "long") == LONGS
    expect(page.locator(".step")).to_contain_text("모델이 정한 검색")
    parts = page.locator(".turn .part")
    assert [part.get_attribute("data-part") for part in parts.all()] == [
        "spec",
        "search",
        "input",
        "generation",
    ]


def test_four_clocks_run_against_their_limits(talker: BookGuest, library: Library):
    page = talker.look().page
    library.reasons = slowly(0.05)
    say(talker)
    page.wait_for_selector(".clock[data-clock=generation][data-state=runs]")
    clocks = page.locator(".clock")
    assert clocks.count() == 4
    for clock, limit in zip(clocks.all(), (5, 20, 8, 30), strict=True):
        assert re.search(rf"\d+\.\d / {limit}초", clock.inner_text())
    assert page.locator(".clock[data-clock=total]").get_attribute("data-state") == "runs"
    page.wait_for_selector(".turn[data-phase=done]")
    assert page.locator(".clock[data-state=runs]").count() == 0


@pytest.mark.parametrize("by", ["button", "Escape"])
def test_stopping_a_turn_ends_the_call_upstream_and_keeps_what_is_finished(
    talker: BookGuest, library: Library, by: str
):
    page = talker.look().page
    library.reasons = slowly(0.1)
    left = library.far.hung_up
    say(talker)
    page.wait_for_selector(".reason.short[data-state=done]")
    if by == "button":
        page.click("#stop")
    else:
        page.keyboard.press("Escape")
    page.wait_for_selector(".turn[data-phase=cancelled]")
    library.far.until(lambda: library.far.hung_up == left + 1)
    library.far.until(lambda: library.far.inside == 0)
    assert texts(talker, "short")[0] == SHORTS[0]
    expect(page.locator(".turn .card[data-mark]").first).to_be_visible()
    expect(page.locator("#send")).to_be_visible()


def test_showing_a_card_again_asks_nobody(talker: BookGuest, library: Library):
    page = talker.look().page
    say(talker)
    page.wait_for_selector(".turn[data-phase=done]")
    shown = texts(talker, "long")
    asked = len(library.far.asked)
    talker.requests.clear()
    page.click("#shelf-count")
    expect(page.locator("#shelf-cards .reason.long").first).to_have_text(re.compile("바다"))
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert texts(talker, "long") == shown, "the conversation is there again"
    page.click("#shelf-count")
    ids = [card.get_attribute("data-card") for card in page.locator(".card").all()]
    assert len(set(ids)) == 2, "by its id, wherever it is shown"
    assert not [url for url in talker.requests if "/recommend" in url]
    assert len(library.far.asked) == asked
    page.click("#forget")
    expect(page.locator("#shelf")).to_be_hidden()


def test_an_error_names_its_stage_and_keeps_what_is_finished(talker: BookGuest, library: Library):
    page = talker.look(lang="en").page
    library.reasons = Step(pieces=list(slowly(0).pieces or ())[:16], reset=True)
    say(talker)
    page.wait_for_selector(".turn[data-phase=error]")
    expect(page.locator(".end")).to_contain_text("broke off while it wrote")
    expect(page.locator(".clock[data-clock=generation]")).to_have_attribute("data-state", "broken")
    assert texts(talker, "short")[0] == SHORTS[0]
    assert page.locator(".reason[data-state=unfinished]").count() == 1
    expect(page.locator(".turn .card[data-mark=unfinished] .card-mark")).to_contain_text(
        "Broken off"
    )


def test_a_model_that_is_down_costs_the_reasons_not_the_cards(talker: BookGuest, library: Library):
    page = talker.look().page
    library.spec = library.reasons = Step(status=500)
    say(talker)
    page.wait_for_selector(".turn[data-phase=done]")
    expect(page.locator(".turn .card[data-mark=bare]")).to_have_count(2)
    expect(page.locator(".turn .note[data-code=no-reasons]")).to_be_visible()
    expect(page.locator(".step")).to_contain_text("말씀 그대로")


def test_without_a_language_model_cards_come_bare_and_marked(books: BookGuest):
    page = books.look().page
    expect(page.locator("#talk-model")).to_contain_text("꺼져")
    say(books)
    page.wait_for_selector(".turn[data-phase=done]")
    expect(page.locator(".turn .card[data-mark=bare]")).to_have_count(3)
    expect(page.locator(".turn .note[data-code=llm-off]")).to_be_visible()


def test_a_refused_turn_is_counted_down_and_begins_by_itself(talker: BookGuest):
    page = talker.look().page
    asked = []

    def once(route):
        asked.append(route.request.post_data)
        if len(asked) == 1:
            refuse(route, ms=3000)
        else:
            route.continue_()

    page.route(TURN, once)
    say(talker)
    expect(page.locator(".turn[data-phase=refused] .countdown")).to_be_visible()
    page.wait_for_selector(".turn[data-phase=done]")
    assert len(asked) == 2


def test_the_conversation_goes_on_with_what_was_shown(talker: BookGuest, library: Library):
    page = talker.look().page
    say(talker)
    page.wait_for_selector(".turn[data-phase=done]")
    with page.expect_request(TURN) as sent:
        say(talker, "더 짧은 것은?")
    messages = json.loads(sent.value.post_data or "")["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert SHORTS[0] in messages[1]["content"]
    page.wait_for_selector(".turn[data-phase=done] >> nth=1")
    page.click("#new-talk")
    expect(page.locator(".turn")).to_have_count(0)


def test_what_is_said_never_becomes_markup(talker: BookGuest, library: Library):
    page = talker.look().page
    sharp = '<img src=x onerror="alert(1)"><b>책</b>'
    library.reasons = slowly(0, short_1=sharp)
    say(talker, sharp)
    page.wait_for_selector(".turn[data-phase=done]")
    assert texts(talker, "short")[0] == sharp
    assert page.locator("#talk img, #talk .turn b").count() == 0


CARD = {"card_id": "c1", "id": "a1", "title": "바다", "author": "하주", "category": "시"}
BARE = CARD | {"reason_short": None, "reason_long": None}
TOKENS = {"prompt": 9, "completion": 3, "reasoning": 0, "counted": True, "calls": 2}
BROKEN = {
    "search": ("store-unavailable", "책을 찾는 데 실패"),
    "input": ("turn-timeout", "제때 말을 시작하지"),
    "generation": ("turn-timeout", "제때 글을 마치지"),
    "idle": ("turn-timeout", "너무 오래 멈췄"),
    "total": ("turn-timeout", "정해 둔 시간"),
}


def stream(*events: tuple[str, dict[str, Any]]) -> str:
    made = (
        f"event: {name}\ndata: {json.dumps(body | {'at_ms': 1.0})}\n\n" for name, body in events
    )
    return "".join(made)


def test_every_stage_that_breaks_has_words_of_its_own(talker: BookGuest):
    page = talker.look().page
    said: list[str] = []
    for stage, (code, words) in BROKEN.items():
        cards = (
            [] if stage == "search" else [CARD | {"reason_short": "다 쓴 글", "reason_long": None}]
        )
        partial = {"cards": cards, "degraded": [], "tokens": TOKENS, "timing_ms": {"spec": 3.0}}
        begun = {"cards": [BARE], "degraded": []}
        delta = {"card_id": "c1", "text": "쓰다 만 글"}
        end = {"stage": stage, "code": code, "detail": "no", "partial": partial}
        told = stream(("cards", begun), ("long.delta", delta), ("error", end))
        page.route(TURN, lambda route, _, told=told: route.fulfill(body=told))
        say(talker)
        page.wait_for_selector(f".turn[data-phase=error] >> nth={len(said)}")
        said.append(page.locator(".turn .end").last.inner_text())
        assert words in said[-1]
        if stage != "search":
            assert "남겨 두었습니다" in said[-1]
            expect(page.locator(".turn .reason.short").last).to_have_text("다 쓴 글")
            expect(page.locator(".turn .card-mark").last).to_contain_text("쓰다 멈춘")
            clock = page.locator(f".turn .clock[data-clock={stage}]").last
            expect(clock).to_have_attribute("data-state", "broken")
        page.unroute(TURN)
    assert len(set(said)) == len(BROKEN)


def test_a_stream_that_is_cut_is_said_to_be_cut_and_keeps_its_cards(talker: BookGuest):
    page = talker.look().page
    told = stream(
        ("cards", {"cards": [BARE], "degraded": []}),
        ("short.done", {"card_id": "c1", "text": "다 쓴 글"}),
    )
    page.route(TURN, lambda route: route.fulfill(body=told))
    say(talker)
    page.wait_for_selector(".turn[data-phase=cut]")
    expect(page.locator(".turn .end")).to_contain_text("연결이 끊겼습니다")
    assert texts(talker, "short") == ["다 쓴 글"]
