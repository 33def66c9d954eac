"""What the documentation tests share: where things are, and the generator of the reference pages."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
READMES = (ROOT / "README.md", ROOT / "README.ko.md")
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=str))


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


reference = _reference()


def code_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def named(pages: tuple[Path, ...]) -> list[str]:
    """Short names, for test ids."""
    return [str(page.relative_to(ROOT)) for page in pages]
