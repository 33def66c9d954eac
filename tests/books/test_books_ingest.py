"""Files of documents into a store: whole, again, by halves, with bad rows, through a running service."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tailrace.search.text import Bigrams
from tailrace.stores.errors import StoreError
from tailrace.stores.sqlite import SqliteStore

GOOD = [{"id": f"r{n}", "title": f"가나 {n}", "author": "하주"} for n in range(300)]


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture
def command(tmp_path, tiny_embedder_folder):
    """Starts `tailrace books ingest` over a store of the test's own."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TAILRACE__MODEL__SOURCE": f"dir:{tiny_embedder_folder}",
        "TAILRACE__STORE__PATH": str(tmp_path / "books.db"),
    }

    def start(*words, **more):
        line = [sys.executable, "-m", "tailrace.cli.main", "books", "ingest", *map(str, words)]
        return subprocess.Popen(
            line, env=environ, cwd=tmp_path, text=True, stderr=subprocess.PIPE, **more
        )

    return start


@pytest.fixture
def ingested(command):
    """Runs it to its end; returns what it said, after checking its exit code."""

    def run(*words, code=0, given=None):
        process = command(*words, stdin=subprocess.PIPE)
        said = process.communicate(given, timeout=120)[1]
        assert process.returncode == code, said
        return said

    return run


def documents(tmp_path):
    store = SqliteStore(tmp_path / "books.db", Bigrams())
    try:
        return store.stats().documents, store.space().vectors
    finally:
        store.close()


def test_an_ingest_that_is_run_twice_changes_nothing(tmp_path, ingested):
    (tmp_path / "new.jsonl").write_text(lines(GOOD), encoding="utf-8")
    assert "300 new, 0 changed, 0 as they were" in ingested("new.jsonl")
    assert "0 new, 0 changed, 300 as they were" in ingested("new.jsonl")
    assert documents(tmp_path) == (300, 300)


def test_csv_and_standard_input_are_files_like_any_other(tmp_path, ingested):
    table = "id,title,keywords,year\nc1,바다,섬;배,1999\nc2,하늘,,\n"
    (tmp_path / "new.csv").write_text(table, encoding="utf-8")
    assert "2 new" in ingested("new.csv")
    assert "1 new" in ingested("-", given=lines([{"id": "s1", "title": "사자"}]))
    store = SqliteStore(tmp_path / "books.db", Bigrams())
    assert store.get(["c1"])[0].keywords == ("섬", "배")
    store.close()


def test_bad_rows_are_told_by_line_and_put_aside(tmp_path, ingested):
    text = (
        lines(GOOD[:2]) + '{"id": "x"\n[1]\n{"id": "y"}\n\n' + lines([{"id": "z", "title": "a\0b"}])
    )
    (tmp_path / "new.jsonl").write_text(text, encoding="utf-8")
    said = ingested("new.jsonl")
    assert "2 new" in said
    assert "4 bad rows" in said
    aside = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert [row["line"] for row in aside] == [3, 4, 5, 7]


def test_of_one_id_given_twice_the_last_counts(tmp_path, ingested):
    rows = [{"id": "d", "title": "바다"}, {"id": "d", "title": "하늘"}]
    (tmp_path / "new.jsonl").write_text(lines(rows), encoding="utf-8")
    ingested("new.jsonl")
    store = SqliteStore(tmp_path / "books.db", Bigrams())
    assert [document.title for document in store.get(["d"])] == ["하늘"]
    store.close()


def test_an_ingest_that_was_killed_goes_on_where_it_stopped(tmp_path, command, ingested):
    many = [{"id": f"k{n}", "title": "가나다라마바사" * 8} for n in range(3000)]
    (tmp_path / "new.jsonl").write_text(lines(many), encoding="utf-8")
    process = command("new.jsonl")
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        if (tmp_path / "books.db").exists() and documents_or_none(tmp_path):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    held, vectors = documents(tmp_path)
    assert 0 < held == vectors
    said = ingested("new.jsonl")
    assert f"{3000 - held} new, 0 changed, {held} as they were" in said
    assert documents(tmp_path) == (3000, 3000)


def documents_or_none(tmp_path):
    try:
        return documents(tmp_path)[0]
    except (StoreError, AttributeError):
        return 0  # the other process is making the file


def test_through_a_running_service_it_is_the_same(tmp_path, shop, ingested):
    (tmp_path / "new.jsonl").write_text(lines(GOOD), encoding="utf-8")
    assert "300 new" in ingested("--url", shop.url, "new.jsonl")
    assert "300 as they were" in ingested("--url", shop.url, "new.jsonl")
    assert shop.ids("가나 7", mode="keyword")[0].startswith("r")


def test_a_file_that_is_not_there_is_one_line_and_exit_code_2(ingested):
    assert "there is no file nowhere.jsonl" in ingested("nowhere.jsonl", code=2)
