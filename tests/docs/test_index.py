"""Who looks for a page finds it in the index; what ships and is not ours alone is in NOTICE."""

from documents import PAGES, ROOT

DOCS = ROOT / "docs"


def test_the_index_names_every_page_outside_the_decisions() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS) for page in PAGES if page.is_relative_to(DOCS)]
    missing = [
        str(page)
        for page in pages
        if page.parts[0] != "decisions" and page.name != "README.md" and f"({page})" not in index
    ]
    assert not missing, f"docs/README.md does not name {missing}"


def test_every_file_of_weights_is_in_the_notice() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    shipped = [
        file.name for file in (ROOT / "src/tailrace/models/data").iterdir() if file.is_file()
    ]
    assert shipped
    assert [name for name in shipped if name not in notice] == []
