"""What the shipped catalogue promises: the fusion does not lose to its legs, class by class."""

import json
import os
import random
import subprocess
import sys

import pytest

from tailrace.apps.books.catalogue import shipped_documents

MARGIN = {"recall@10": 0.05, "mrr@10": 0.0625}
"""What eight queries of a kind may differ by chance: less than half a query; half of one first place."""
LOSS_MAX = 0.01
"""What the fusion may lose where keywords alone know the answer."""
PHRASES, NAMES = 60, 40


def asked(tmp_path_factory, *words):
    data = tmp_path_factory.mktemp("data")
    run = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", "books", "quality", "--json", *words],
        env={**os.environ, "XDG_DATA_HOME": str(data), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return asked(tmp_path_factory)


@pytest.fixture(scope="module")
def by_class(tmp_path_factory):
    """Lexical questions, and authors of several books: drawn by seed, labelled by construction."""
    draw, books = random.Random(17), shipped_documents()
    rows = []
    for book in draw.sample([one for one in books if one.description], PHRASES):
        words = book.description.rstrip(".").split()
        first = draw.randint(0, max(0, len(words) - 4))
        text = " ".join(words[first : first + 4])
        same = {one.id: 2 for one in books if text in (one.description or "")}
        rows.append({"query": text, "kind": "lexical", "relevant": same | {book.id: 2}})
    wrote = {}
    for book in books:
        wrote.setdefault(book.author, {})[book.id] = 2
    names = [name for name, ids in wrote.items() if name and len(ids) > 1 and name != "작자 미상"]
    for name in draw.sample(sorted(names), NAMES):
        text = draw.choice([name, f"{name} 책", name.replace(" ", "")])
        rows.append({"query": text, "kind": "author", "relevant": wrote[name]})
    file = tmp_path_factory.mktemp("queries") / "classes.jsonl"
    lines = [json.dumps({"qid": str(number), **row}) for number, row in enumerate(rows)]
    file.write_text("\n".join(lines), encoding="utf-8")
    return asked(tmp_path_factory, "--queries", str(file))["kinds"]


def mean(found, system, metric):
    return found[system][metric]["mean"]


@pytest.mark.model
def test_the_fusion_reaches_what_the_guide_says(report):
    assert report["without_labels"] == 0
    assert mean(report["all"], "hybrid", "recall@10") >= 0.84
    assert mean(report["all"], "hybrid", "mrr@10") >= 0.93


@pytest.mark.model
@pytest.mark.parametrize("metric", MARGIN)
def test_on_no_kind_of_query_does_the_fusion_lose_to_its_better_leg(report, metric):
    for kind, found in report["kinds"].items():
        best = max(mean(found, leg, metric) for leg in ("keyword", "vector"))
        assert mean(found, "hybrid", metric) >= best - MARGIN[metric], kind


@pytest.mark.model
def test_where_keywords_alone_know_the_answer_the_fusion_loses_next_to_nothing(by_class):
    found = by_class["lexical"]
    assert mean(found, "vector", "mrr@10") < mean(found, "keyword", "mrr@10") - LOSS_MAX
    assert mean(found, "hybrid", "mrr@10") >= mean(found, "keyword", "mrr@10") - LOSS_MAX


@pytest.mark.model
@pytest.mark.parametrize("metric", ["recall@10", "mrr@10"])
def test_an_author_s_books_are_not_pushed_aside_by_their_neighbours(by_class, metric):
    found = by_class["author"]
    best = max(mean(found, leg, metric) for leg in ("keyword", "vector"))
    assert mean(found, "hybrid", metric) >= best - LOSS_MAX
