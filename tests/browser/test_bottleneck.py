"""The bottleneck's report in a real browser: a shorter story, measured for real."""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tailrace.bench.bottleneck.places import ACTS
from tailrace.cli.bottleneck import tell_story
from tailrace.cli.bottleneck_page import KEYS, page
from tailrace.cli.bottleneck_words import WORDS

pytestmark = pytest.mark.alone

PICTURES = Path(__file__).parents[2] / "docs" / "screenshots"
WIDE = 15.1
"""Percent; no figure is allowed to be further off than its range or 15 %."""
ENOUGH = 40
"""Requests of each act: fewer than in the real demo, enough for every part of the page."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    acts = [replace(act, n=ENOUGH) for act in ACTS]
    told: list[tuple[str, float]] = []
    with ThreadPoolExecutor(1) as elsewhere:  # playwright keeps a loop running in this thread
        story = elsewhere.submit(tell_story, folder, lambda *at: told.append(at), acts).result()
    shares = [share for _, share in told]
    assert max(shares) <= 1.0
    assert len(told) > ENOUGH, "progress is told while it is measured"
    path = folder / "bottleneck.html"
    path.write_text(page(story), encoding="utf-8")
    return path


@pytest.fixture
def shown(browser: Browser, report: Path) -> Iterator[Page]:
    made = browser.new_context(viewport={"width": 1000, "height": 800}, java_script_enabled=False)
    opened = made.new_page()
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    assert asked == [report.as_uri()], "the report holds everything it needs"
    yield opened
    made.close()


def cells(shown: Page, part: str, language: str) -> list[list[str]]:
    rows = shown.locator(f".{language} [data-part={part}] tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def number(told: str) -> float:
    """The figure in a cell, without its unit."""
    return float(told.replace(",", "").split()[0].rstrip("%"))


def test_the_edge_is_cut_off_and_its_limit_is_never_told_as_a_latency(shown: Page):
    acts = cells(shown, "acts", "ko")
    assert len(acts) == len(KEYS)
    edge = acts[KEYS.index("edge")]
    _, n, cut, median, tail, _ = edge
    assert int(cut) > int(n) / 2
    assert median == tail == "≥ 1,500 ms (제한 시간)"
    assert not any("1,50" in text for text in edge if "≥" not in text)
    for key in ("first", "later", "near"):
        assert re.fullmatch(r"[\d,]+ ms", acts[KEYS.index(key)][3])


def test_every_measurement_leads_to_its_own_report(shown: Page, report: Path):
    links = shown.locator(".ko [data-part=acts] a").all()
    assert [link.get_attribute("href") for link in links] == [f"{key}/report.html" for key in KEYS]
    links[-1].click()
    assert shown.url == (report.parent / "near" / "report.html").as_uri()
    assert shown.locator("svg").count() > 0


def test_the_leading_part_is_another_one_at_every_place(shown: Page):
    leads = {
        key: row[-1].split()[0] for key, row in zip(KEYS, cells(shown, "acts", "ko"), strict=True)
    }
    assert leads["first"] == "think"
    assert leads["later"] in {"net", "queue"}
    assert leads["edge"] == leads["near"] == "generate"


def test_the_third_place_was_foretold_part_by_part(shown: Page):
    rows = cells(shown, "foretold", "ko")
    figures = {row[0] for row in rows}
    assert {"평균", "중앙값", "net", "generate", "잘린 비율"} <= figures
    assert {row[-1] for row in rows} <= {"맞음", "벗어남"}
    for figure, _, range_, came, off, verdict in rows:
        low, high = (number(end) for end in range_.split("–"))
        if low < number(came) < high:
            assert verdict == "맞음", figure
        elif abs(number(off)) > WIDE:
            assert verdict == "벗어남", figure


def test_both_languages_are_there_and_one_is_shown(shown: Page):
    assert shown.locator(".ko h1").is_visible()
    assert not shown.locator(".en h1").is_visible()
    shown.locator("label:has(#en)").click()
    assert shown.locator(".en h1").inner_text() == WORDS["en"]["title"]
    assert not shown.locator(".ko h1").is_visible()


@pytest.mark.parametrize("width", [390, 1000])
def test_nothing_sticks_out_of_the_page(browser: Browser, report: Path, width: int):
    opened = browser.new_page(viewport={"width": width, "height": 800})
    opened.goto(report.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    drawn = opened.locator(".ko .wide:has(svg)").all()
    assert len(drawn) == 2
    for drawing in drawn:
        box = drawing.bounding_box()
        assert box is not None
        assert box["width"] <= width
    opened.close()


def test_its_pictures_are_kept_where_they_are_asked_for(browser: Browser, report: Path):
    """Only with TAILRACE_WRITE_SCREENSHOTS: of the real demo, whose folder it names."""
    folder = os.environ.get("TAILRACE_WRITE_SCREENSHOTS")
    source = Path(folder) / "bottleneck.html" if folder else report
    for language in WORDS:
        opened = browser.new_page(viewport={"width": 1000, "height": 800})
        opened.goto(source.as_uri())
        opened.locator(f"label:has(#{language})").click()
        picture = opened.screenshot(full_page=True)
        assert picture.startswith(b"\x89PNG")
        if folder:
            (PICTURES / f"bottleneck-{language}.png").write_bytes(picture)
        opened.close()


def test_both_languages_have_the_same_keys_and_holes():
    ko, en = WORDS["ko"], WORDS["en"]
    assert ko.keys() == en.keys()
    for key, text in ko.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", en[key])), key
        assert not re.search(r"\{\w+\}(은|는|이|가|을|를|과|와|으로|로)\b", text), key
    assert json.dumps(ko)
