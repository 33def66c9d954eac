"""Somebody in front of the page.

`wait_for_function` evaluates a string inside the page, which its policy forbids; this waits for
elements instead.
"""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

RUN_MS = 90_000
AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"


class Guest:
    """Somebody in front of the page: opens it, presses, reads, and remembers what went wrong."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, door: str = "limited", n: int = 12, seed: int = 7, lang: str = "ko") -> "Guest":
        self.page.goto(f"{self.url}/#door={door}&n={n}&seed={seed}&lang={lang}")
        self.page.wait_for_selector("html[data-ready=true]")
        self.page.wait_for_selector("#send:enabled")
        return self

    def send(self) -> list[dict[str, Any]]:
        """Press send, wait for the end, and return the lines of the stream as the box sent them."""
        lines: list[dict[str, Any]] = []

        def note(route: Route) -> None:
            answer = route.fetch(timeout=RUN_MS)
            lines.extend(json.loads(line) for line in answer.text().splitlines() if line)
            route.fulfill(response=answer)

        self.page.route("**/api/crowd", note)
        self.page.click("#send")
        self.wait()
        self.page.unroute("**/api/crowd", note)
        return lines

    def replay(self) -> None:
        self.page.click("#replay")
        self.wait()

    def wait(self) -> None:
        """Wait for the end of what was just begun: the page shows it on its next frame."""
        self.page.evaluate(
            "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )
        self.page.wait_for_selector("#send:enabled", timeout=RUN_MS)

    def export(self, kind: str) -> str:
        with self.page.expect_download() as got:
            self.page.click(f"#{kind}")
        return Path(got.value.path()).read_text(encoding="utf-8-sig")
