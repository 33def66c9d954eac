"""Covers, end to end: a picture in, its book out; the real detector and the real tesseract read it."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookshops import Shop, serving_books

if "TAILRACE_CI" not in os.environ and not (
    importlib.util.find_spec("rapidocr") and shutil.which("tesseract")
):
    pytest.skip("nothing reads covers here; `make covers` says how", allow_module_level=True)

from cover_pictures import Words, cover, filed
from tailrace.apps.books.catalogue import shipped_documents

JPEG = {"content-type": "image/jpeg"}
PATH = "/api/books/cover"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tiny_embedder_folder: Path) -> Iterator[Shop]:
    """The catalogue that ships; no vectors: covers are looked up by their words."""
    folder = tmp_path_factory.mktemp("covers")
    source = f"dir:{tiny_embedder_folder}"
    with serving_books(
        folder / "books.db", model__source=source, store__catalogue=False, threads=2
    ) as shop:
        shop.server.store.upsert(shipped_documents())
        yield shop


def test_a_cover_is_read_and_its_book_is_found(library: Shop) -> None:
    picture = cover(Words("소년이 온다", "한강", "창비"))
    answer = library.ask("POST", PATH, content=filed(picture), headers=JPEG)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["found"] == "ocr", body
    assert body["books"][0]["document"]["title"] == "소년이 온다"
    assert body["tokens"] == {"calls": 0, "prompt": 0, "completion": 0, "reasoning": 0}
    assert "recognise;dur=" in answer.headers["server-timing"]
