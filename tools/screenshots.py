"""Takes the pictures of the pages in docs/screenshots from running services: both languages, both themes.

tailrace serve &
python tools/screenshots.py box http://127.0.0.1:8000
tailrace books serve &
python tools/screenshots.py books http://127.0.0.1:8090
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
LOCALES = {"en": "en-US", "ko": "ko-KR"}
THEMES = ("light", "dark")
WIDTH, HEIGHT = 1280, 1000
BUTTONS = {"en": "Through all four doors", "ko": "네 문에 차례로"}
QUERIES = {"en": "a quiet novel for a rainy day", "ko": "비 오는 날 읽기 좋은 잔잔한 소설"}


def run_all_doors(page: Page, url: str, language: str) -> None:
    """Send the same crowd through all doors and wait until the last one is through."""
    button = BUTTONS[language]
    page.goto(url)
    page.get_by_role("button", name=button).click()
    page.wait_for_function(
        "() => document.querySelectorAll('.compare tbody tr, #compare tbody tr').length >= 4",
        timeout=180_000,
    )
    page.get_by_role("button", name=button).wait_for(state="visible")
    page.wait_for_timeout(1500)


def find_and_recommend(page: Page, url: str, language: str) -> None:
    """Search, show how the first hit came to its place, and ask for a recommendation."""
    page.goto(f"{url}/books#lang={language}")
    page.wait_for_selector("html[data-ready=true]")
    page.locator("#starters button").first.click()
    page.wait_for_selector(
        ".turn:not([data-phase=asking]):not([data-phase=running])", timeout=60_000
    )
    page.fill("#q", QUERIES[language])
    page.wait_for_selector("#results[aria-busy=false] .hit")
    page.locator(".hit [data-do=legs]").first.click()
    page.locator("#title").click()
    page.wait_for_timeout(500)


PAGES: dict[str, Callable[[Page, str, str], None]] = {
    "box": run_all_doors,
    "books": find_and_recommend,
}


def main(name: str, url: str) -> None:
    """One picture for each language and theme."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for language, locale in LOCALES.items():
            for theme in THEMES:
                context = browser.new_context(
                    locale=locale,
                    color_scheme=theme,
                    viewport={"width": WIDTH, "height": HEIGHT},
                )
                page = context.new_page()
                PAGES[name](page, url, language)
                target = FOLDER / f"{name}-{language}-{theme}.png"
                page.screenshot(path=target, full_page=False)
                print(target.name)
                context.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
