"""Somebody in front of the book page."""

from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, Route
from review_guest import Guest

SEARCH = "**/api/books/search*"


class BookGuest(Guest):
    """Opens it, types as people do, and reads what is found."""

    def look(self, lang: str = "ko", **asked: Any) -> "BookGuest":
        """Open the page, with what the address asks for."""
        self.page.goto(f"{self.url}/books#{urlencode({**asked, 'lang': lang})}")
        self.page.wait_for_selector("html[data-ready=true]")
        if asked.get("q"):
            self.answered()
        return self

    def type(self, text: str) -> None:
        self.page.focus("#q")
        self.page.keyboard.type(text, delay=15)

    def answered(self) -> None:
        self.page.wait_for_selector("#results[aria-busy=false] #told:not([hidden])")

    def titles(self) -> list[str]:
        return self.page.locator("#hits h3 span:last-child").all_inner_texts()

    def searches(self) -> list[str]:
        """The queries that have left for the service, in order."""
        return [url for url in self.requests if "/api/books/search" in url]


class Composing:
    """A Korean input method at the page's focus: syllables that grow letter by letter."""

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)

    def to(self, text: str) -> None:
        """Show `text` as what is being composed."""
        size = len(text)
        self.session.send(
            "Input.imeSetComposition",
            {"text": text, "selectionStart": size, "selectionEnd": size},
        )

    def end(self, text: str) -> None:
        """Hand `text` over in place of what was composed."""
        self.session.send("Input.insertText", {"text": text})


def refuse(route: Route, *, status: int = 429, code: str = "lane-full", ms: int = 700) -> None:
    """Answer as a full service does."""
    route.fulfill(
        status=status,
        content_type="application/problem+json",
        headers={"Retry-After": "1", "retry-after-ms": str(ms)},
        body=f'{{"code": "{code}", "title": "The line is full", "status": {status}}}',
    )
