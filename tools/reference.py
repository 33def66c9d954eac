"""Writes the generated parts of docs/reference from the code: `make docs`.

The code is the source; a page that differs from what this file would write fails a test. Text outside
the marked blocks is written by hand and left alone.
"""

import argparse
import sys
from pathlib import Path

from reference_bounds import limits
from reference_http import api_openapi, dialect_errors, entries, errors, metrics
from reference_settings import configuration, remote_settings

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
HOWTO_REMOTE = ROOT / "docs" / "howto" / "remote.md"


def block(text: str, name: str, content: str) -> str:
    """`text` with the content of one marked block replaced."""
    begin, end = f"<!-- begin {name}: written by make docs -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"the page has no block {name}: {begin} ... {end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{content}\n\n{end}{rest.split(end)[1]}"


def pages() -> dict[Path, str]:
    """What every generated page should hold, by path."""
    http = (REFERENCE / "http.md").read_text(encoding="utf-8")
    api = (REFERENCE / "api.md").read_text(encoding="utf-8")
    own = {p: about for p, about in api_openapi()["paths"].items() if not p.startswith("/tei/")}
    api = block(block(api, "entries", entries(own)), "errors", dialect_errors())
    return {
        REFERENCE / "api.md": api,
        REFERENCE / "configuration.md": configuration(),
        REFERENCE / "http.md": block(block(http, "entries", entries()), "errors", errors()),
        HOWTO_REMOTE: block(
            HOWTO_REMOTE.read_text(encoding="utf-8"), "settings", remote_settings()
        ),
        REFERENCE / "metrics.md": block(
            (REFERENCE / "metrics.md").read_text(encoding="utf-8"), "metrics", metrics()
        ),
        REFERENCE / "limits.md": block(
            (REFERENCE / "limits.md").read_text(encoding="utf-8"), "limits", limits()
        ),
    }


def main() -> int:
    """Write the pages, or with --check say which differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page differs"
    )
    check = parser.parse_args().check
    stale = []
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
