"""A run's report in a real browser: light and dark, Korean and English, alone on a disk."""

import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tailrace.latency.cost import Prices
from tailrace.latency.report import keep_reports
from tailrace.latency.runs import Head, Load, RunWriter
from tailrace.wire.record import Part, Row

VENDOR = Path(__file__).parent / "vendor"
PICTURES = Path(__file__).parents[2] / "docs" / "screenshots"
BEGAN = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def rows() -> list[Row]:
    """A model that is busy two thirds of the time, seen from near by; some are not waited for."""
    chance, found, free = random.Random(7), list[Row](), 0.0
    at = 0.0
    for number in range(1200):
        at += chance.expovariate(20.0)
        service = 30 * chance.lognormvariate(0, 0.25)
        queue = max(0.0, free - at * 1000)
        free = at * 1000 + queue + service
        parts = {
            "sched": Part(0.1, "measured"),
            "pool": Part(0.05, "measured"),
            "net": Part(4.0, "measured"),
            "queue": Part(queue, "declared"),
            "infer": Part(service, "declared"),
            "transfer": Part(0.4, "measured"),
            "client": Part(0.3, "measured"),
            "other": Part(chance.gauss(0.5, 0.3), "residual"),
        }
        wall = sum(part.ms for part in parts.values())
        outcome = "timeout" if number % 400 == 399 else "ok"
        if outcome == "timeout":
            parts["other"] = Part(parts["other"].ms + 400 - wall, "residual")
            wall = sum(part.ms for part in parts.values())
        unix_s = BEGAN.timestamp() + at
        found.append(Row(wall, parts, 200, outcome, at, unix_s, detail={"input_tokens": 21}))
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "2026-12-01T030000Z-embed"
    head = Head(
        id=folder.name,
        kind="bench",
        scenario="embed",
        question="How long does one embedding take, and where does its time go?",
        target="http://127.0.0.1:8080/v1",
        protocol="openai-embeddings",
        model="multilingual-e5-small",
        began=BEGAN,
        best_before=date(2026, 12, 31),
    )
    env = {"commit": "0123abcd", "cpu": "a processor", "cores": 2}
    with RunWriter(folder, head, env) as writer:
        writer.append(*rows())
        writer.finish(load=Load(kind="open-poisson", duration_s=60.0, offered_per_s=20.0, seed=7))
    prices = Prices(per_call=0.2, machine_month=60_000, cap=360_000)
    return keep_reports(folder, "en", prices)


@pytest.fixture
def shown(browser: Browser, report: Path) -> Iterator[Page]:
    made = browser.new_context(viewport={"width": 1100, "height": 900}, java_script_enabled=False)
    opened = made.new_page()
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    assert asked == [report.as_uri()], "the report holds everything it needs"
    yield opened
    made.close()


def test_the_table_adds_up_and_says_where_it_knows_it_from(shown: Page):
    lines = [
        line.locator("td").all_inner_texts()
        for line in shown.locator(".en [data-part=parts] tbody tr").all()
    ]
    *parts, total = lines
    means = [float(line[2].replace(",", "")) for line in parts]
    assert sum(means) == pytest.approx(float(total[2].strip("≥ ")), rel=0.02)
    assert {line[0]: line[1] for line in parts}["other"] == "residual"
    assert {line[0]: line[1] for line in parts}["queue"] == "declared"


def test_who_was_cut_off_is_told_as_a_lower_bound(shown: Page):
    text = shown.locator(".en").inner_text()
    assert "3 of 1200 requests were cut off after 400 ms or more" in text
    total = shown.locator(".en [data-part=parts] tbody tr").last
    assert total.locator("td").all_inner_texts()[2].startswith("≥")


def test_the_language_is_switched_without_scripts(shown: Page):
    verdict = shown.locator("[data-part=verdict]")
    assert verdict.nth(1).is_visible()
    shown.get_by_label("한국어").check()
    assert verdict.nth(0).is_visible()
    assert not verdict.nth(1).is_visible()
    assert "평균" in verdict.nth(0).inner_text()


def test_every_drawing_says_in_words_what_it_shows(shown: Page):
    drawings = shown.locator(".en svg").all()
    assert len(drawings) == 6
    for drawing in drawings:
        label = drawing.get_attribute("aria-label") or ""
        assert any(digit.isdigit() for digit in label), label


def test_nothing_is_wider_than_a_small_screen(browser: Browser, report: Path):
    made = browser.new_context(viewport={"width": 390, "height": 800})
    opened = made.new_page()
    opened.goto(report.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    # A drawing is moved within its frame and not shrunk: its words can be read.
    sizes = opened.evaluate(
        """() => [...document.querySelectorAll('.en svg text')].map(text =>
             parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
    )
    assert min(sizes) >= 9
    frame = opened.locator(".en .wide:has(svg)").first
    frame.focus()
    opened.keyboard.press("ArrowRight")
    opened.wait_for_function("document.querySelector('.en .wide:has(svg)').scrollLeft > 0")
    opened.add_script_tag(path=str(next(VENDOR.rglob("axe*.js"))))
    found = opened.evaluate("axe.run().then(r => r.violations.map(v => v.id))")
    assert found == []
    made.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_contrast_and_names_hold_in_light_and_dark(
    browser: Browser, report: Path, scheme: str, language: str
):
    made = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme=scheme)
    opened = made.new_page()
    opened.goto(report.as_uri())
    opened.locator(f"#{language}").check()
    opened.add_script_tag(path=str(next(VENDOR.rglob("axe*.js"))))
    found = opened.evaluate(
        "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
    )
    picture = opened.screenshot(full_page=True)
    if os.environ.get("TAILRACE_WRITE_SCREENSHOTS"):
        (PICTURES / f"run-report-{language}-{scheme}.png").write_bytes(picture)
    made.close()
    assert found == []
