"""Takes the pictures of the page in docs/screenshots from a running box: both languages, both themes.

tailrace serve &
python tools/screenshots.py http://127.0.0.1:8000
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
LANGUAGES = {"en": ("en-US", "Through all four doors"), "ko": ("ko-KR", "네 문에 차례로")}
THEMES = ("light", "dark")
WIDTH, HEIGHT = 1280, 1000


def run_all_doors(page: Page, url: str, button: str) -> None:
    """Send the same crowd through all doors and wait until the last one is through."""
    page.goto(url)
    page.get_by_role("button", name=button).click()
    page.wait_for_function(
        "() => document.querySelectorAll('.compare tbody tr, #compare tbody tr').length >= 4",
        timeout=180_000,
    )
    page.get_by_role("button", name=button).wait_for(state="visible")
    page.wait_for_timeout(1500)


def main(url: str) -> None:
    """One picture for each language and theme."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for language, (locale, button) in LANGUAGES.items():
            for theme in THEMES:
                context = browser.new_context(
                    locale=locale,
                    color_scheme=theme,
                    viewport={"width": WIDTH, "height": HEIGHT},
                )
                page = context.new_page()
                run_all_doors(page, url, button)
                target = FOLDER / f"box-{language}-{theme}.png"
                page.screenshot(path=target, full_page=False)
                print(target.name)
                context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
