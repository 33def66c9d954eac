"""Strict policy, nobody outside, a quiet console; what the page says when the box is not well."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from cuttable import Wire
from playwright.sync_api import expect
from review_guest import Guest

import tailrace.apps.review

PAGE = Path(tailrace.apps.review.__file__).parent / "page"


def test_the_page_obeys_a_strict_policy(box_url):
    answer = httpx.get(f"{box_url}/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"\sstyle=|<style|\son\w+=|<script(?![^>]*\ssrc=)", answer.text)


def test_no_outside_request_and_a_quiet_console(guest: Guest):
    guest.page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " e => console.error('policy', e.violatedDirective))"
    )
    guest.open(n=2)
    guest.send()
    guest.page.locator("#rows .review").first.click()
    assert guest.complaints == []
    hosts = {
        urlsplit(url).netloc for url in guest.requests if not url.startswith(("data:", "blob:"))
    }
    assert hosts == {urlsplit(guest.url).netloc}
    streams = [url for url in guest.requests if "/api/events" in url]
    assert len(streams) == 1, "one stream for the whole page"


def test_every_vendored_file_has_its_licence():
    for folder in (PAGE / "vendor").iterdir():
        assert (folder / "LICENSE").is_file(), folder


def test_the_stream_resumes_where_it_was_cut(guest: Guest, box_url):
    wire = Wire(box_url)
    try:
        guest.url = wire.url
        guest.open()
        guest.page.wait_for_selector("#link-state[data-link=live]")
        wire.cut()
        for _ in range(200):
            if len(wire.streams()) > 1:
                break
            guest.page.wait_for_timeout(50)
        first, second = (data.lower() for data in wire.streams()[:2])
        assert b"last-event-id" not in first
        assert re.search(rb"last-event-id: \d+", second), "it says where it stopped"
        guest.page.wait_for_selector("#link-state[data-link=live]")
        guest.send()
        assert guest.page.locator("#rows > tr").count() == 12
    finally:
        wire.close()


def test_without_a_stream_it_polls(guest: Guest):
    guest.page.route("**/api/events*", lambda route: route.abort())
    guest.page.goto(f"{guest.url}/#lang=en")
    guest.page.wait_for_selector("#link-state[data-link=polling]", timeout=20_000)
    expect(guest.page.locator("#send")).to_be_enabled()


def test_a_loading_model_is_said_and_nothing_can_be_sent(guest: Guest):
    guest.page.route("**/readyz", lambda route: route.fulfill(status=503, body="{}"))
    guest.page.goto(f"{guest.url}/#lang=en")
    guest.page.wait_for_selector("#banner[data-kind=loading]")
    expect(guest.page.locator("#banner")).to_contain_text("loading", use_inner_text=True)
    expect(guest.page.locator("#send")).to_be_disabled()
    guest.page.unroute("**/readyz")
    guest.page.wait_for_selector("#send:enabled")
    expect(guest.page.locator("#banner")).to_be_hidden()


def test_a_box_that_is_gone_is_said(guest: Guest):
    page = guest.page
    page.route("**/api/events*", lambda route: route.abort())
    guest.open(lang="en")
    page.route("**/api/**", lambda route: route.abort())
    page.wait_for_selector("#banner[data-kind=gone]", timeout=20_000)
    expect(page.locator("#send")).to_be_disabled()


@pytest.mark.parametrize("width", [390, 768, 1280, 1600])
def test_what_is_said_at_the_top_keeps_to_the_column_below_it(guest: Guest, width: int):
    page = guest.page
    page.set_viewport_size({"width": width, "height": 900})
    page.route("**/readyz", lambda route: route.fulfill(status=503, body="{}"))
    page.goto(f"{guest.url}/#lang=en")
    page.wait_for_selector("#banner[data-kind=loading]")
    edges = page.evaluate(
        """() => ["#banner", "main > *:first-child"].map((found) => {
            const box = document.querySelector(found).getBoundingClientRect();
            return [Math.round(box.left), Math.round(box.right)];
        })"""
    )
    assert edges[0] == edges[1]


def test_a_killed_child_is_shown_as_502(guest: Guest):
    problem = {
        "status": 502,
        "title": "Child was killed",
        "detail": "memory",
        "code": "child-killed",
    }
    guest.page.route(
        "**/api/naive/predict",
        lambda r: r.fulfill(
            status=502, content_type="application/problem+json", body=json.dumps(problem)
        ),
    )
    guest.open(door="naive", n=1, lang="en").page.click("#send")
    guest.page.wait_for_selector("#rows > tr[data-fate=killed]")
    expect(guest.page.locator("#rows .note")).to_contain_text("502", use_inner_text=True)
    expect(guest.page.locator("#gave-naive")).to_contain_text("502 for 1", use_inner_text=True)


def test_a_lost_ticket_is_shown_as_lost(guest: Guest):
    guest.page.route(
        "**/api/queue/jobs/*",
        lambda r: r.fulfill(status=404, body='{"status": 404, "code": "unknown-ticket"}'),
    )
    guest.open(door="queue", n=1, seed=321, lang="en").page.click("#send")
    guest.page.wait_for_selector("#rows > tr[data-fate=failed]")
    expect(guest.page.locator("#rows .note")).to_contain_text("lost", use_inner_text=True)
