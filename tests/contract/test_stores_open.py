"""The store of the book service by its address: a file, or a database."""

import json

import pytest
from typer.testing import CliRunner

from databases import Postgres
from tailrace.apps.books.server import open_store
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.main import app
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.port import Document, Space

SECRET = "hush-hush"  # a password that must be seen nowhere


def settings(**store):
    return load(BooksSettings, environ={}, overrides={f"store.{k}": v for k, v in store.items()})


@pytest.mark.parametrize("kind", ["file", "database"])
def test_the_books_are_where_the_settings_say(kind, tmp_path, request):
    if kind == "file":
        where = settings(path=str(tmp_path / "new" / "books.db"))
    else:
        server: Postgres = request.getfixturevalue("postgres_plain")
        where = settings(url=server.url)
    for expected in ([], ["바다"]):
        store = open_store(where)
        assert store.stats().engine == ("sqlite" if kind == "file" else "postgres")
        assert [document.title for document in store.get(["a"])] == expected
        store.upsert([Document("a", "바다")])
        store.close()


def test_the_password_of_a_database_is_never_printed():
    found = settings(url=f"postgresql://books:{SECRET}@db.example/books")
    assert SECRET not in repr(found) + found.model_dump_json()
    assert SECRET in found.store.address()


@pytest.mark.parametrize(
    "store",
    [
        {"url": f"mysql://books:{SECRET}@db.example/books"},
        {"url": f"postgresql://books:{SECRET}@db.example/books", "path": "books.db"},
    ],
)
def test_a_place_that_is_none_or_two_is_refused_without_repeating_the_password(store):
    with pytest.raises(BadConfiguration, match="url") as bad:
        settings(**store)
    assert SECRET not in str(bad.value)


def test_a_space_made_by_a_migration_has_its_index_when_it_takes_over(
    postgres_vector, tiny_embedder_folder, monkeypatch, tmp_path
):
    monkeypatch.setattr("tailrace.stores.postgres_vectors.EXACT_ROWS", 40)
    monkeypatch.setenv("TAILRACE__STORE__URL", postgres_vector.url)
    monkeypatch.setattr("os.nice", lambda _: 0)
    old = Space("old", "f00d", "float32", "", "", "mean", True, 4, "words")
    store = open_store(settings(url=postgres_vector.url))
    store.add_space(old)
    store.upsert([Document(f"m{n}", f"바다 {n}") for n in range(60)])
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({"qid": "q", "query": "바다", "relevant": {"m1": 1}}) + "\n")
    words = ["books", "migrate", "--to", f"dir:{tiny_embedder_folder}", "--force"]
    done = CliRunner().invoke(app, [*words, "--queries", str(queries)])
    assert done.exit_code == 0, done.output
    active = store.space()
    assert (active.space.model, active.vectors) != (old.model, 0)
    assert store.stats().detail["hnsw"] == "yes"
    store.close()
