"""Crowds: what the table says is what the box sent."""

import csv
import io
import json
import re
from typing import Any

from playwright.sync_api import expect
from review_guest import Guest


def parts_of(line: dict[str, Any]) -> dict[str, float]:
    found = re.findall(r"(\w+);dur=([\d.]+)", line["server_timing"] or "")
    return {name: float(value) for name, value in found}


def test_twelve_at_the_limited_door_five_answers_seven_refusals(after_limited):
    guest, lines = after_limited
    assert [line["status"] for line in lines if "status" in line].count(429) == 7
    rows = guest.page.locator("#rows > tr")
    assert rows.count() == 12
    assert guest.page.locator("#rows > tr[data-fate=answered]").count() == 5
    refused = guest.page.locator("#rows > tr[data-fate=refused]")
    assert refused.count() == 7
    assert re.search(r"429 · \d+초 뒤 다시", refused.first.locator(".note").inner_text())
    sentence = guest.page.locator("#gave-limited").inner_text()
    assert "5명은 답을 받았고 7명은" in sentence


def test_bands_are_as_long_as_server_timing_says(after_limited):
    guest, lines = after_limited
    answers = {line["i"]: line for line in lines if "status" in line}
    slowest = max(line["round_trip_ms"] for line in answers.values())
    checked = 0
    for i, line in answers.items():
        if line["status"] != 200:
            continue
        row = guest.page.locator(f"#rows > tr[data-i='{i}']")
        track = row.locator(".track").bounding_box()["width"]
        parts = parts_of(line)
        for kind in ("wait", "infer"):
            wanted = parts[kind] / slowest * track
            if wanted < 1.5:
                continue
            drawn = row.locator(f".seg.{kind}").bounding_box()["width"]
            assert abs(drawn - wanted) <= 1, f"row {i}, {kind}: {drawn} px drawn, {wanted} px told"
            checked += 1
    assert checked >= 9


def test_the_csv_holds_the_numbers_of_the_table(after_limited):
    guest, _ = after_limited
    lines = list(csv.DictReader(io.StringIO(guest.export("csv"))))
    assert len(lines) == 12
    for k, line in enumerate(lines):
        cells = guest.page.locator(f"#rows > tr[data-i='{k}'] > td").all_inner_texts()
        assert line["review"] == cells[1].strip()
        for column, cell in (("wait_ms", 4), ("inference_ms", 5), ("round_trip_ms", 6)):
            shown = cells[cell].replace(",", "").strip()
            if not line[column]:
                assert shown == "–"
            else:
                value = float(line[column])
                assert abs(float(shown) - value) <= (0.051 if value < 9.95 else 0.51)
        assert "box" in line["round_trip_measured_by"]


def test_the_json_holds_parts_topics_and_the_curl(after_limited):
    guest, lines = after_limited
    whole = json.loads(guest.export("json"))
    (run,) = whole["runs"]
    first = next(r for r in run["requests"] if r["status"] == 200)
    sent = next(line for line in lines if line.get("i") == first["no"] - 1)
    assert first["parts"]["infer"] == parts_of(sent)["infer"]
    assert len(first["topics"]) == 24
    assert first["curl"].startswith("curl -si ")
    assert run["summary"]["answered"] == 5
    assert whole["model"]["fingerprint"]


def test_a_row_opens_to_topics_times_and_curl(after_limited):
    guest, _ = after_limited
    button = guest.page.locator("#rows > tr[data-fate=answered] .review").first
    button.click()
    detail = guest.page.locator(".detail")
    assert detail.locator(".topics li:not(.line)").count() == 24
    assert detail.locator(".topics .line").count() == 1, "weak topics are marked off"
    expect(detail.locator("pre")).to_contain_text("curl -si", use_inner_text=True)
    expect(detail.locator(".parts")).to_contain_text("상자가 잼", use_inner_text=True)
    button.click()
    assert detail.count() == 0


def test_replay_goes_through_all_four_doors(guest: Guest):
    page = guest.open(n=6, lang="en").page
    before = {
        d: page.locator(f"#gave-{d}").inner_text() for d in ("naive", "limited", "batched", "queue")
    }
    guest.replay()
    assert page.locator("#compare-rows tr").count() == 4
    for door, text in before.items():
        assert page.locator(f".door[data-door={door}]").get_attribute("data-phase") == "done"
        after = page.locator(f"#gave-{door}").inner_text()
        assert after != text
        assert re.search(r"\d", after), "a sentence of a run has numbers in it"
        assert "{" not in after
    assert "memory" in page.locator("#gave-naive").inner_text().lower()
    assert page.locator("#rows > tr").first.locator(".sign-at").count() == 3, (
        "earlier runs as ghosts"
    )
    page.uncheck("#ghosts")
    assert page.locator(".sign-at").count() == 0
    page.check("#door-limited")
    assert page.locator("#rows > tr[data-fate=refused]").count() == 1, (
        "choosing a door shows its run"
    )
    lines = list(csv.DictReader(io.StringIO(guest.export("csv"))))
    assert len(lines) == 24
    assert guest.complaints == []


def test_tickets_show_the_life_of_the_ticket(guest: Guest):
    page = guest.open(door="queue", n=3).page
    lines = guest.send()
    done = {line["i"]: line for line in lines if line.get("done")}
    assert len(done) == 3
    assert all(line["ticket"]["status"] == "done" for line in done.values())
    slowest = max(line["ticket_ms"] for line in done.values())
    for i, line in done.items():
        row = page.locator(f"#rows > tr[data-i='{i}']")
        track = row.locator(".track").bounding_box()["width"]
        wanted = line["ticket"]["inference_ms"] / slowest * track
        assert abs(row.locator(".seg.infer").bounding_box()["width"] - wanted) <= 1
        waited = line["ticket"]["waited_ms"] / slowest * track
        if waited > 1.5:
            assert abs(row.locator(".seg.ticket").bounding_box()["width"] - waited) <= 1


def test_one_guest_is_timed_by_the_browser_and_the_same_words_come_from_the_cache(guest: Guest):
    page = guest.open(n=1, seed=4711).page
    asked = []
    page.on("request", lambda r: asked.append(r.url) if r.method == "POST" else None)
    page.click("#send")
    guest.wait()
    assert asked == [f"{guest.url}/api/limited/predict"]
    expect(page.locator("#rt-clock")).to_contain_text("브라우저", use_inner_text=True)
    page.click("#send")
    guest.wait()
    expect(page.locator("#rows .note")).to_contain_text("캐시", use_inner_text=True)


def test_typed_reviews_come_one_per_line(guest: Guest):
    page = guest.open().page
    page.check("input[name=source][value=typed]", force=True)
    expect(page.locator("#send")).to_be_disabled()
    page.fill("#typed", "주차가 어려워요\n\n  it's <b>fine</b> & 'good'  \n")
    guest.send()
    texts = page.locator("#rows .review").all_inner_texts()
    assert texts == ["주차가 어려워요", "it's <b>fine</b> & 'good'"]
    page.locator("#rows .review").nth(1).click()
    assert r"it'\''s <b>fine</b> & '\''good'\''" in page.locator(".detail pre").inner_text()


def test_a_link_brings_the_same_crowd(guest: Guest, browser):
    first = guest.open(door="batched", n=3, seed=99)
    first.send()
    texts = first.page.locator("#rows .review").all_inner_texts()
    assert len(set(texts)) == 3
    link = first.page.url
    assert "door=batched" in link
    assert "seed=99" in link
    other = browser.new_context(locale="ko-KR")
    second = Guest(other.new_page(), guest.url)
    second.page.goto(link)
    second.page.wait_for_selector("#send:enabled")
    expect(second.page.locator("#door-batched")).to_be_checked()
    second.send()
    assert second.page.locator("#rows .review").all_inner_texts() == texts
    other.close()


def test_the_guests_stand_at_the_door_before_they_are_sent(guest: Guest):
    page = guest.open(n=5).page
    assert page.locator("#rows > tr").count() == 5
    assert page.locator("#table").get_attribute("data-phase") == "preview"
    before = page.locator("#rows .review").all_inner_texts()
    page.click("#shuffle")
    assert page.locator("#rows .review").all_inner_texts() != before


def test_the_line_is_drawn_while_it_stands(guest: Guest):
    page = guest.open(door="queue", n=5).page
    page.click("#send")
    page.wait_for_selector("#lane-inside .place.in[data-door=queue]")
    page.wait_for_selector("#lane-tickets .slip.held")
    page.wait_for_selector("#rows .badge.ticket")
    guest.wait()
    page.wait_for_selector("#lane-inside .place.free")
    assert page.locator("#lane-line .place.free").count() == 4
    assert re.search(r"상한 [\d.,]+", page.locator("#memory-now").inner_text())
    assert page.locator("#chart-memory canvas").count() == 1


def test_a_crowd_can_be_stopped(guest: Guest):
    page = guest.open(door="queue", n=12, lang="en").page
    page.click("#send")
    page.wait_for_selector("#rows .badge.ticket")
    page.click("#stop")
    guest.wait()
    expect(page.locator("#run-line")).to_contain_text("stopped", use_inner_text=True)
    expect(page.locator("#rows .answer").last).to_contain_text("cut off", use_inner_text=True)
    assert guest.complaints == []
