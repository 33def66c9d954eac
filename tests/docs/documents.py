"""What the documentation tests share: where things are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READMES = (ROOT / "README.md", ROOT / "README.ko.md")
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=str))


def code_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def named(pages: tuple[Path, ...]) -> list[str]:
    """Short names, for test ids."""
    return [str(page.relative_to(ROOT)) for page in pages]
