"""`tailrace books reindex`: the keyword index of a store by another analyser, from the command line."""

import os
import subprocess
import sys
from contextlib import closing

import pytest

from bookshops import BARE
from databases import Postgres, debian_bin
from tailrace.apps.books.server import open_store
from tailrace.apps.books.settings import BooksSettings
from tailrace.serve.settings import load
from tailrace.stores.port import Document


def tailrace(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", "books", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(params=["file", "database"])
def place(request, tmp_path):
    """Where a store is, as a setting."""
    if request.param == "file":
        yield "store.path", str(tmp_path / "books.db")
        return
    programs = debian_bin()
    if programs is None:
        assert not os.environ.get("TAILRACE_CI"), "CI must install PostgreSQL 15"
        pytest.skip("PostgreSQL 15 (Debian: postgresql) is not installed")
    server = Postgres(programs)
    yield "store.url", server.url
    server.stop()


def test_the_analyser_of_a_store_is_changed_by_a_verb_and_only_by_it(place):
    name, where = place
    at = {f"TAILRACE__{name.replace('.', '__').upper()}": where}
    with closing(
        open_store(load(BooksSettings, environ={}, overrides=BARE | {name: where}))
    ) as had:
        had.upsert([Document(f"d{n}", f"부르는 소리 {n}") for n in range(30)])

    refused = tailrace("migrate", "--status", TAILRACE__STORE__ANALYZER="morphemes", **at)
    assert refused.returncode == 2
    assert "index it again with: tailrace books reindex" in refused.stderr

    done = tailrace("reindex", TAILRACE__STORE__ANALYZER="morphemes", **at)
    assert done.returncode == 0, done.stderr
    assert "30 documents indexed by bigrams-2+mecab-ko" in done.stdout
    again = tailrace("reindex", TAILRACE__STORE__ANALYZER="morphemes", **at)
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    forced = tailrace("reindex", "--force", TAILRACE__STORE__ANALYZER="morphemes", **at)
    assert "30 documents indexed" in forced.stdout

    settings = load(
        BooksSettings, environ={}, overrides={name: where, "store.analyzer": "morphemes"}
    )
    with closing(open_store(settings)) as has:
        terms = has.analyzer.query_terms("불렀다")
        assert len(has.keyword(terms, 50).hits) == 30


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    file = tmp_path / "none.db"
    said = tailrace("reindex", TAILRACE__STORE__PATH=str(file))
    assert said.returncode == 2
    assert "tailrace books ingest FILE" in said.stderr
    assert not file.exists()


def test_an_analyser_that_is_none_is_a_mistake_in_the_settings(tmp_path):
    said = tailrace("reindex", TAILRACE__STORE__ANALYZER="words", TAILRACE__STORE__PATH="x.db")
    assert said.returncode == 2
    assert "store.analyzer" in said.stderr
