"""Another model under the store: filled beside, judged, switched, taken back; search goes on throughout."""

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from bookshops import serving_books
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.models.folder import Description, write_description
from tailrace.models.open import open_embedder
from tailrace.search.gate import LOSS_MAX, QUERIES_MIN, judge
from tailrace.search.ingest import ingest
from tailrace.search.migrate import fill, roll_back, take_over
from tailrace.search.text import Bigrams
from tailrace.stores.errors import CanaryMismatch, StoreError, UnknownSpace
from tailrace.stores.port import Document
from tailrace.stores.sqlite import SqliteStore
from tiny import write_tiny

LETTERS = "가나다라마바사아자차카타파하주"
DRAW = random.Random(3)
ROWS = [
    {"id": f"m{n:03}", "title": "".join(DRAW.choices(LETTERS, k=12)), "author": "하주"}
    for n in range(300)
]
DOCUMENTS = [Document(row["id"], row["title"], author=row["author"]) for row in ROWS]
EMOJI = "🦊"
"""What words cannot find: only the vector leg answers it."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three tiny models: the one in use, the same under another name, and one that means something else."""
    made = tmp_path_factory.mktemp("models")
    again = write_tiny(made / "again", pair=False)
    prompts = {"query": "q ", "passage": "p "}
    write_description(again, Description("again", max_tokens=90, prompts=prompts))
    return {
        "old": write_tiny(made / "old", pair=False),
        "again": again,
        "other": write_tiny(made / "other", pair=False, seed=8),
    }


@pytest.fixture(scope="module")
def embedders(folders, threads):
    models = {
        name: open_embedder(f"dir:{folder}", threads=threads) for name, folder in folders.items()
    }
    yield {name: ModelEmbedder(model) for name, model in models.items()}
    for model in models.values():
        model.close()


@pytest.fixture
def opened(tmp_path):
    stores = []

    def open_once():
        stores.append(SqliteStore(tmp_path / "books.db", Bigrams()))
        return stores[-1]

    yield open_once
    for store in stores:
        store.close()


@pytest.fixture
def store(opened, embedders):
    """A store of 300 documents in the space of the model in use."""
    made, old = opened(), embedders["old"]
    made.add_space(old.space, old.canary)
    list(ingest(made, old.space, old.documents_now, DOCUMENTS))
    return made


def states(store):
    return [(held.space.model, held.state, held.vectors) for held in store.spaces()]


@pytest.fixture
def migrate(tmp_path, folders):
    """Runs `tailrace books migrate`; returns all it said, after checking its exit code."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TAILRACE__MODEL__SOURCE": f"dir:{folders['old']}",
        "TAILRACE__STORE__PATH": str(tmp_path / "books.db"),
    }

    def run(*words, code=0, **more):
        line = [sys.executable, "-m", "tailrace.cli.main", "books", "migrate", *map(str, words)]
        done = subprocess.run(
            line,
            env=environ | more,
            cwd=tmp_path,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def write_queries(file, found, count):
    """Queries whose labels are what the model in use finds for them."""
    draw = random.Random(4)
    rows = []
    for n in range(count):
        text = "".join(draw.choices(LETTERS, k=6))
        rows.append({"qid": str(n), "query": text, "relevant": dict.fromkeys(found(text), 1)})
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.fixture
def queries(tmp_path, store, folders):
    """Makes labelled queries for the store: as many as asked for."""

    def make(count):
        with serving_books(
            tmp_path / "books.db",
            model__source=f"dir:{folders['old']}",
            store__catalogue=False,
            threads=1,
            search__embed_ms=60_000,
        ) as shop:
            return write_queries(tmp_path / "queries.jsonl", lambda q: shop.ids(q, size=10), count)

    return make


# -- filling and switching ------------------------------------------------------------------------


def test_searches_and_writes_go_on_while_a_second_space_is_filled(
    tmp_path, store, opened, folders, embedders
):
    new = embedders["again"]
    with serving_books(
        tmp_path / "books.db",
        model__source=f"dir:{folders['old']}",
        threads=1,
        search__embed_ms=60_000,
    ) as shop:
        other = opened()
        other.add_space(new.space, new.canary)
        before = shop.ids(EMOJI)
        seen = []
        for step in fill(other, new.space, new.documents_now):
            found = shop.search(EMOJI)
            assert (found["mode"], found["degraded"]) == ("hybrid", [])
            assert found["space"] == embedders["old"].space.fingerprint
            assert [hit["id"] for hit in found["hits"]] == before
            if not seen:
                body = {"title": "가나다라", "author": "아자"}
                assert shop.ask("PUT", "/api/books/m000", json=body).status_code == 200
                before = shop.ids(EMOJI)
            seen.append(step.taken)
        assert len(seen) >= 3
        assert other.missing(new.space, 1) == []
        assert other.get(["m000"])[0].title == "가나다라"


def test_a_fill_that_was_stopped_goes_on_where_it_stopped(store, embedders):
    new = embedders["again"]
    store.add_space(new.space, new.canary)
    first = next(fill(store, new.space, new.documents_now))
    assert 0 < first.taken < 300
    last = list(fill(store, new.space, new.documents_now))[-1]
    assert (last.taken, last.vectors, last.documents) == (300 - first.taken, 300, 300)
    assert list(fill(store, new.space, new.documents_now)) == []


def test_what_is_written_before_the_switch_is_in_the_new_space_after_it(store, embedders):
    old, new = embedders["old"], embedders["again"]
    store.add_space(new.space, new.canary)
    list(fill(store, new.space, new.documents_now))
    late = Document("late", "하나")
    list(ingest(store, old.space, old.documents_now, [late]))
    steps = take_over(store, new.space, new.documents_now)
    assert next(steps).taken == 1
    assert store.space().space == old.space
    list(steps)
    assert store.space().space == new.space
    assert store.missing(new.space, 1) == []


def test_a_fill_that_the_store_takes_nothing_of_gives_up(store, embedders):
    new = embedders["again"]
    store.add_space(new.space, new.canary)

    def changed_meanwhile(passages):
        now = [replace(d, year=DRAW.randrange(10**6)) for d in DOCUMENTS]
        store.upsert(now)
        return new.documents_now(passages)

    with pytest.raises(StoreError, match="take no vector"):
        list(fill(store, new.space, changed_meanwhile))


def test_of_several_kept_spaces_the_way_back_must_be_named(store, embedders):
    with pytest.raises(UnknownSpace, match="no way back"):
        roll_back(store)
    for name in ("again", "other"):
        store.add_space(embedders[name].space)
        store.switch(embedders[name].space)
    with pytest.raises(UnknownSpace, match="--space"):
        roll_back(store)
    with pytest.raises(UnknownSpace, match="there is no space nowhere"):
        roll_back(store, "nowhere")
    old = embedders["old"].space
    assert roll_back(store, old.fingerprint).state == "active"
    assert store.space().space == old


# -- the gate -------------------------------------------------------------------------------------


def table(values):
    """Rows of scores whose recall@10 are `values`."""
    return np.repeat(np.asarray(values, float)[:, None], 5, axis=1)


def test_a_gain_passes_and_a_clear_loss_fails():
    assert judge(table([0.9] * 40), table([0.8] * 40)).verdict == "pass"
    assert judge(table([0.8] * 40), table([0.8] * 40)).verdict == "pass"
    assert judge(table([0.6] * 40), table([0.8] * 40)).verdict == "fail"


def test_the_loss_that_is_allowed_is_two_points():
    assert LOSS_MAX == 0.02
    assert judge(table([0.79] * 40), table([0.8] * 40)).verdict == "pass"
    assert judge(table([0.77] * 40), table([0.8] * 40)).verdict == "fail"


def test_the_test_is_paired_so_hard_and_easy_queries_do_not_count_as_noise():
    hard_and_easy = np.tile([0.0, 1.0], 30)
    gate = judge(table(hard_and_easy * 0.995), table(hard_and_easy))
    assert gate.verdict == "pass"
    assert gate.after.high - gate.after.low > 0.1


def test_a_sample_that_cannot_tell_is_not_decidable():
    few = judge(table([0.9] * (QUERIES_MIN - 1)), table([0.8] * (QUERIES_MIN - 1)))
    assert (few.verdict, str(QUERIES_MIN) in few.why) == ("not decidable", True)
    wide = judge(table(np.tile([0.0, 1.0], 20)), table(np.tile([1.0, 0.0], 20)))
    assert wide.verdict == "not decidable"
    alone = judge(table([0.9] * 40), None)
    assert (alone.verdict, alone.difference) == ("not decidable", None)


# -- the command ----------------------------------------------------------------------------------


def test_the_whole_way_there_and_back(store, opened, folders, embedders, queries, migrate):
    file, new, old = queries(60), embedders["again"].space, embedders["old"].space
    said = migrate("--to", f"dir:{folders['again']}", "--queries", file)
    assert "recall gate: pass" in said
    assert states(store) == [(old.model, "kept", 300), (new.model, "active", 300)]
    listed = migrate("--status")
    assert all(word in listed for word in (new.fingerprint, old.fingerprint, "kept", "active"))
    assert "is the active space already" in migrate("--to", folders["again"], "--queries", file)
    assert "is the active space again" in migrate("--rollback")
    assert states(store)[0][1] == "active"
    assert "is the active space" in migrate("--drop", old.fingerprint, code=2)
    assert "300 vectors" in migrate("--drop", new.fingerprint)
    assert states(store) == [(old.model, "active", 300)]
    assert "there is no space" in migrate("--drop", new.fingerprint, code=2)


def test_a_model_that_finds_less_is_not_switched_to_even_with_force(
    store, folders, queries, migrate
):
    file = queries(60)
    said = migrate("--to", f"dir:{folders['other']}", "--queries", file, "--force", code=1)
    assert "recall gate: fail" in said
    assert [state for _, state, _ in states(store)] == ["active", "backfilling"]


def test_what_cannot_be_decided_is_switched_to_only_by_force(store, folders, queries, migrate):
    file = queries(5)
    words = ("--to", f"dir:{folders['again']}", "--queries", file)
    said = migrate(*words, code=1)
    assert "recall gate: not decidable" in said
    assert "--force" in said
    assert [state for _, state, _ in states(store)] == ["active", "backfilling"]
    migrate(*words, "--force")
    assert [state for _, state, _ in states(store)] == ["kept", "active"]


def test_without_the_model_in_use_nothing_can_be_compared_until_it_is_named(
    store, folders, queries, migrate
):
    file = queries(60)
    to, now = f"dir:{folders['again']}", {"TAILRACE__MODEL__SOURCE": f"dir:{folders['again']}"}
    said = migrate("--to", "again", "--queries", file, code=1, **now)
    assert "not at hand" in said
    said = migrate("--to", to, "--from", f"dir:{folders['old']}", "--queries", file, **now)
    assert "recall gate: pass" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say one of --to MODEL"),
        (("--rollback", "--status"), "say one of --to MODEL"),
        (("--to", "nothing"), "is no model source"),
        (("--to", "dir:nowhere"), "nowhere"),
        (("--to", "tiny", "--queries", "none.jsonl"), "none.jsonl"),
        (("--rollback",), "no way back"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(store, migrate, words, said):
    told = migrate(*words, code=2)
    assert said in told
    assert len(told.strip().splitlines()) == 1


def test_where_there_is_no_store_none_is_made(tmp_path, migrate):
    assert "there is no store" in migrate("--status", code=2)
    assert not (tmp_path / "books.db").exists()


# -- the service over a store of another model ----------------------------------------------------


def test_a_model_folder_swapped_under_the_store_degrades_searches_and_refuses_writes(
    tmp_path, store, folders, embedders
):
    here = tmp_path / "model"
    shutil.copytree(folders["other"], here)
    with serving_books(tmp_path / "books.db", model__source=f"dir:{here}", threads=1) as shop:
        title = ROWS[7]["title"]
        found = shop.search(title)
        assert (found["mode"], found["degraded"]) == ("keyword", ["space-mismatch"])
        assert found["hits"][0]["id"] == "m007"
        assert shop.metric("books_degraded_total", reason="space-mismatch") == 1
        alone = {"q": title, "mode": "vector"}
        assert shop.ask("GET", "/api/books/search", params=alone).status_code == 409
        for body in ({"title": "새 책"}, ROWS[7]):
            refused = shop.ask("PUT", "/api/books/m007", json=body)
            assert refused.status_code == 409
            assert refused.json()["code"] == "space-mismatch"
            assert "tailrace books migrate --to tiny" in refused.json()["detail"]
        assert "tailrace books migrate --to tiny" in str(shop.server.mismatch())
        assert store.get(["m007"]) == [DOCUMENTS[7]]
    assert [state for _, state, _ in states(store)] == ["active"]


def test_a_service_started_beforehand_finds_all_from_the_moment_of_the_switch(
    tmp_path, store, folders, embedders
):
    new = embedders["again"]
    store.add_space(new.space, new.canary)
    list(fill(store, new.space, new.documents_now))
    settings = {"threads": 1, "search__embed_ms": 60_000}
    file = tmp_path / "books.db"
    with (
        serving_books(file, model__source=f"dir:{folders['old']}", **settings) as before,
        serving_books(file, model__source=f"dir:{folders['again']}", **settings) as after,
    ):
        assert before.search("가나")["mode"] == "hybrid"
        assert after.search("가나")["degraded"] == ["space-mismatch"]
        list(take_over(store, new.space, new.documents_now))
        assert after.search("가나")["mode"] == "hybrid"
        assert before.search("가나")["degraded"] == ["space-mismatch"]
        refused = before.ask("PUT", "/api/books/m001", json={"title": "하나"})
        assert refused.status_code == 409


def test_the_same_model_with_other_vectors_than_before_does_not_start(
    tmp_path, opened, folders, embedders
):
    old, other = embedders["old"], embedders["other"]
    opened().add_space(old.space, replace(old.canary, vector=other.canary.vector))
    with (
        pytest.raises(CanaryMismatch, match="no longer gives the vectors"),
        serving_books(tmp_path / "books.db", model__source=f"dir:{folders['old']}", threads=1),
    ):
        pass


def test_an_ingest_with_another_model_writes_nothing_and_says_what_to_run(
    tmp_path, store, folders, migrate
):
    (tmp_path / "new.jsonl").write_text(json.dumps({"id": "n", "title": "하나"}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", "books", "ingest", "new.jsonl"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TAILRACE__MODEL__SOURCE": f"dir:{folders['other']}",
            "TAILRACE__STORE__PATH": str(tmp_path / "books.db"),
        },
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "tailrace books migrate --to tiny" in done.stderr
    assert store.get(["n"]) == []
