"""Shops that the tests of this folder share: a tiny model with random weights, a few documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bookshops import Shop, serving_books

ROWS = [
    {"id": "a1", "title": "가나다 바다", "author": "하주", "category": "소설/한국", "year": 1999},
    {"id": "a2", "title": "바다 이야기", "author": "나나", "category": "소설/외국", "year": 2005},
    {"id": "a3", "title": "The Cat", "author": "Ann Lee", "category": "과학", "year": 2011},
    {"id": "a4", "title": "하늘 아이", "author": "하주", "category": "과학", "keywords": ["바다"]},
]
"""Documents of the tiny shop."""


@pytest.fixture
def shop(tmp_path: Path, tiny_embedder_folder: Path) -> Iterator[Shop]:
    """A shop of four documents over a store of its own."""
    source = f"dir:{tiny_embedder_folder}"
    with serving_books(
        tmp_path / "books.db", model__source=source, store__catalogue=False, threads=2
    ) as made:
        answer = made.ask("POST", "/api/books/documents", json={"documents": ROWS})
        assert answer.json() == {"inserted": 4, "updated": 0, "unchanged": 0}
        yield made
