"""Recommendation turns, end to end: a scripted language model behind the book service, a client before it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from talking import REASONS, SPEC, WANTED, Library, is_spec, library, written
from upstream import Step


@pytest.fixture
def books(tmp_path: Path, tiny_embedder_folder: Path) -> Iterator[Library]:
    with library(tmp_path, tiny_embedder_folder) as made:
        yield made


def test_a_turn_tells_spec_cards_short_reasons_long_reasons_and_its_end(books: Library) -> None:
    events = books.turn()
    names = [name for name, _ in events]
    assert names[:2] == ["spec", "cards"]
    assert names[-1] == "done"
    assert names.index("short.done") < names.index("long.delta")
    spec, cards, done = events[0][1], events[1][1]["cards"], events[-1][1]
    assert spec["query"] == SPEC["query"]
    assert spec["by"] == "model"
    assert len(cards) == 2
    said: dict[str, str] = {}
    for name, body in events:
        if name.endswith(".delta"):
            key = f"{body['card_id']} {name[:-6]}"
            said[key] = said.get(key, "") + body["text"]
    for number, card in enumerate(done["cards"], 1):
        for kind in ("short", "long"):
            assert card[f"reason_{kind}"] == REASONS[f"{kind}_{number}"]
            assert said[f"{card['card_id']} {kind}"] == REASONS[f"{kind}_{number}"]
    moments = [body["at_ms"] for _, body in events]
    assert moments == sorted(moments)
    assert list(done["timing_ms"]) == ["spec", "search", "input", "generation"]
    assert done["degraded"] == []
    assert done["tokens"]["calls"] == 2
    assert done["tokens"]["prompt"] == 100
    assert books.shop.metric("books_turns_total", outcome="done") == 1


def test_a_card_has_one_id_and_its_texts_so_showing_it_again_asks_nobody(books: Library) -> None:
    first, again = books.turn()[-1][1]["cards"], books.turn()[-1][1]["cards"]
    assert [card["card_id"] for card in first] == [card["card_id"] for card in again]
    asked = len(books.far.asked)
    for card in first:
        shown = books.shop.ask("GET", f"/api/books/{card['id']}")
        assert shown.status_code == 200
    assert len(books.far.asked) == asked == 4


def test_a_model_that_is_down_costs_the_reasons_not_the_cards(books: Library) -> None:
    books.spec = books.reasons = Step(status=500)
    events = books.turn()
    name, done = events[-1]
    assert name == "done"
    assert events[0][1]["by"] == "words"
    assert "no-reasons" in done["degraded"]
    assert len(done["cards"]) == 2
    assert all(card["reason_short"] is None for card in done["cards"])
    assert books.shop.metric("books_turns_total", outcome="degraded") == 1


@pytest.mark.parametrize("text", ["I think so.", '{"query": ""}', '{"query": 3}'])
def test_a_spec_that_cannot_be_used_gives_way_to_the_persons_words(
    books: Library, text: str
) -> None:
    books.spec = Step(pieces=written(text))
    events = books.turn()
    assert events[0][1]["by"] == "words"
    assert events[-1][0] == "done"
    assert events[-1][1]["degraded"] == ["spec-invalid"]
    assert events[-1][1]["cards"][0]["reason_short"] == REASONS["short_1"]


def test_a_second_try_is_made_only_before_the_first_piece(books: Library) -> None:
    steps = iter([Step(reset=True), books.spec, books.reasons])
    books.far.decide = lambda asked: next(steps)
    assert books.turn()[-1][0] == "done"
    broken = written(json.dumps(REASONS, ensure_ascii=False))[:8]
    count = len(books.far.asked)
    books.far.decide = lambda asked: (
        books.spec if is_spec(asked) else Step(pieces=broken, reset=True)
    )
    name, end = books.turn()[-1]
    assert name == "error"
    assert end["stage"] == "generation"
    assert len(books.far.asked) == count + 2


def test_a_finished_short_reason_survives_a_long_one_that_takes_too_long(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    clocks = {"turn__clocks__generation_s": 1.0}
    with library(tmp_path, tiny_embedder_folder, **clocks) as books:
        text = json.dumps(REASONS, ensure_ascii=False)
        cut = text.index('"long_1"')
        quick, slow = written(text[:cut], size=200)[:-3], written(text[cut:], size=1)
        books.reasons = Step(pieces=[*quick, *slow], between_s=0.1)
        name, end = books.turn()[-1]
        assert name == "error"
        assert (end["stage"], end["code"]) == ("generation", "turn-timeout")
        shorts = [card["reason_short"] for card in end["partial"]["cards"]]
        assert shorts == [REASONS["short_1"], REASONS["short_2"]]
        assert end["partial"]["tokens"]["counted"]
        assert books.shop.metric("books_turn_stages_broken_total", stage="generation") == 1
        books.far.until(lambda: books.far.inside == 0)


@pytest.mark.parametrize(
    ("clock", "step", "stage"),
    [
        ("input_s", Step(pieces=[b": waiting\n\n"] * 40, between_s=0.1), "input"),
        ("idle_s", Step(pieces=[*written("{")[:2], b": thinking\n\n"] * 40, between_s=0.6), "idle"),
        ("total_s", Step(pieces=written('{"short_1": "' + "가" * 400), between_s=0.05), "total"),
    ],
)
def test_each_clock_is_named_by_its_own_error(
    tmp_path: Path, tiny_embedder_folder: Path, clock: str, step: Step, stage: str
) -> None:
    with library(tmp_path, tiny_embedder_folder, **{f"turn__clocks__{clock}": 0.5}) as books:
        books.reasons = step
        began = time.monotonic()
        name, end = books.turn()[-1]
        assert name == "error"
        assert (end["stage"], end["code"]) == (stage, "turn-timeout")
        assert time.monotonic() - began < 10
        books.far.until(lambda: books.far.inside == 0)


def test_an_answer_cut_off_at_its_limit_is_said_to_be_cut_off(books: Library) -> None:
    text = json.dumps(REASONS, ensure_ascii=False)
    books.reasons = Step(pieces=written(text[:60], finish="length"))
    name, end = books.turn()[-1]
    assert name == "error"
    assert end["code"] == "llm-truncated"
    assert end["partial"]["cards"][0]["reason_short"] == REASONS["short_1"]
    assert end["partial"]["cards"][1]["reason_long"] is None


def test_a_caller_who_leaves_ends_the_call_upstream(books: Library) -> None:
    books.reasons = Step(pieces=written('{"short_1": "' + "가" * 4000), between_s=0.05)
    with (
        books.shop.client() as client,
        client.stream("POST", "/api/books/recommend", json=WANTED) as answer,
    ):
        for line in answer.iter_lines():
            if line == "event: short.delta":
                break
    books.far.until(lambda: books.far.hung_up == 1)
    assert books.far.inside == 0


def test_thinking_that_was_to_be_off_is_counted_all_the_same(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    settings = {"llm__reasoning": "off", "llm__provider": "qwen"}
    with library(tmp_path, tiny_embedder_folder, **settings) as books:
        thoughts = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
        books.reasons = Step(pieces=[thoughts, *(books.reasons.pieces or ())])
        done = books.turn()[-1][1]
        assert done["tokens"]["thoughts_seen"] == 1
        assert all(asked.body["enable_thinking"] is False for asked in books.far.asked)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": "  "}]},
        {"messages": [{"role": "user", "content": "a\0b"}]},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x" * 4001}]},
        {"messages": WANTED["messages"], "count": 0},
        {"messages": WANTED["messages"], "count": 99},
        {"messages": WANTED["messages"], "more": 1},
    ],
)
def test_what_is_no_conversation_is_refused_before_anybody_is_asked(
    books: Library, body: dict[str, Any]
) -> None:
    answer = books.shop.ask("POST", "/api/books/recommend", json=body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid-input"
    assert books.far.asked == []


def test_a_full_line_is_told_with_when_to_come_back(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    with library(tmp_path, tiny_embedder_folder, turn__in_flight_max=1) as books:
        books.reasons = Step(pieces=written('{"short_1": "' + "가" * 400), between_s=0.05)
        with (
            books.shop.client() as client,
            client.stream("POST", "/api/books/recommend", json=WANTED) as answer,
        ):
            lines = answer.iter_lines()
            next(lines)  # the turn is under way, and stays so while somebody reads it
            refused = books.shop.ask("POST", "/api/books/recommend", json=WANTED)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
