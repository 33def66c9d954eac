"""Spans of the book service: the legs of a search, the stages of a turn, and both in one trace."""

import time
from pathlib import Path

import pytest
from test_books_recommend import library

from boxes import parts_of
from collector import UNSET, collecting
from upstream import Step

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


def test_a_search_and_a_turn_are_spans_with_their_stages(tmp_path: Path, tiny_embedder_folder):
    with collecting() as collector:
        with library(tmp_path, tiny_embedder_folder, tracing__endpoint=collector.url) as books:
            asked = {"params": {"q": "바다"}, "headers": PARENT}
            timing = parts_of(books.shop.ask("GET", "/api/books/search", **asked).headers)
            events = books.turn()
            done = events[-1][1]
            heard = [one.headers.get("traceparent", "") for one in books.far.asked]
            named = {"door": "recommend", "part": "spec"}
            until = time.monotonic() + 10  # the last event of a stream comes before its end
            while not (kept := books.shop.metric("books_part_seconds_count", **named)):
                assert time.monotonic() < until
        search = collector.whole("GET /api/books/search")
        assert search.trace == TRACE
        parts = collector.parts(search)
        assert {"embed", "keyword", "vector", "fuse"} <= {span.name for span in parts}
        assert {span.name: span.ms for span in parts} == pytest.approx(timing, abs=0.001)
        turn = collector.whole("POST /api/books/recommend")
        stages = {span.name: span for span in collector.parts(turn)}
        for stage, took_ms in done["timing_ms"].items():
            assert stages[stage].ms == pytest.approx(took_ms, abs=5.0)
        assert sum(span.ms for span in stages.values()) == pytest.approx(turn.ms, abs=0.001)
        assert heard == [f"00-{turn.trace}-{turn.id}-01"] * 2
        assert kept == 1
        assert turn.status == UNSET
        assert turn.about["tailrace.door"] == "recommend"
        assert turn.about["gen_ai.request.model"] == "far-chat"
        assert turn.about["gen_ai.usage.input_tokens"] == done["tokens"]["prompt"] == 100
        assert turn.about["gen_ai.usage.output_tokens"] == done["tokens"]["completion"]
        assert "바다" not in str(collector.spans)


def test_a_turn_that_breaks_says_in_which_stage(tmp_path: Path, tiny_embedder_folder):
    with collecting() as collector:
        settings = {"tracing__endpoint": collector.url, "turn__clocks__idle_s": 0.2}
        with library(tmp_path, tiny_embedder_folder, **settings) as books:
            whole = books.reasons.pieces
            assert whole is not None
            books.reasons = Step(pieces=whole[:4], between_s=0.01, reset=True)
            assert books.turn()[-1][0] == "error"
        turn = collector.whole("POST /api/books/recommend")
        assert turn.about["tailrace.outcome"] == "failed"
        assert turn.about["error.type"] == "upstream-failed"
        assert [span.name for span in collector.parts(turn)][-1] == "transfer"
        assert "generation" in {span.name for span in collector.parts(turn)}
