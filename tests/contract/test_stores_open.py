"""The store of the book service by its address: a file, or a database."""

import pytest

from databases import Postgres
from tailrace.apps.books.server import open_store
from tailrace.apps.books.settings import BooksSettings
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.port import Document

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
