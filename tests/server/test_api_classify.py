"""Classifiers with several logits, and models whose answers cannot be used, over real ONNX files."""

import contextlib
from collections.abc import Iterator
from math import exp, inf, nan
from pathlib import Path
from typing import Any

import pytest

from apis import Api, serving_api
from tables import write_table
from tailrace.models.errors import ModelUnavailable
from tailrace.models.open_classifier import open_classifier

MOODS = {"good": (2.0, -1.0, 0.5), "bad": (-1.0, 3.0, 0.5), "long": (0.25, 0.25, 0.25)}
NAMES = {"0": "praise", "1": "complaint", "2": "neutral"}
SINGLE = "single_label_classification"
MULTI = "multi_label_classification"


@contextlib.contextmanager
def serving(folder: Path, kind: str, **offer: Any) -> Iterator[Api]:
    named = {"name": "table", "kind": kind, "source": f"dir:{folder}", **offer}
    with serving_api(models=[named], threads=2) as api:
        yield api


@pytest.fixture(scope="module", params=["thread", "process"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("single")
    write_table(folder, MOODS, "logits", id2label=NAMES, problem_type=SINGLE)
    with serving(folder, "classifier", runs={"isolation": request.param}) as served:
        yield served


def softmax(logits: tuple[float, ...]) -> list[float]:
    raised = [exp(logit) for logit in logits]
    return [one / sum(raised) for one in raised]


def by_name(predictions: list[dict[str, Any]]) -> list[float]:
    """The scores in the order of the labels, after making sure that the best came first."""
    scores = [one["score"] for one in predictions]
    assert scores == sorted(scores, reverse=True)
    found = {one["label"]: one["score"] for one in predictions}
    return [found[name] for name in NAMES.values()]


def test_a_text_gets_a_share_for_each_label_the_best_first(api: Api):
    predictions = api.ok("/predict", {"inputs": "good"})
    assert predictions[0]["label"] == "praise"
    assert by_name(predictions) == pytest.approx(softmax(MOODS["good"]), abs=1e-6)
    assert sum(by_name(predictions)) == pytest.approx(1.0)


def test_raw_scores_are_the_logits(api: Api):
    predictions = api.ok("/predict", {"inputs": "bad", "raw_scores": True})
    assert by_name(predictions) == pytest.approx(MOODS["bad"])


def test_several_texts_come_back_in_order(api: Api):
    good, bad = api.ok("/predict", {"inputs": [["good"], ["bad"]]})
    assert (good[0]["label"], bad[0]["label"]) == ("praise", "complaint")


def test_a_pair_is_read_as_one_input(api: Api):
    pair = api.ok("/predict", {"inputs": ["good", "bad"], "raw_scores": True})
    expected = [a + b for a, b in zip(MOODS["good"], MOODS["bad"], strict=True)]
    assert by_name(pair) == pytest.approx(expected)
    pairs = api.ok("/predict", {"inputs": [["good", "bad"], ["bad", "long"]]})
    assert [len(rows) for rows in pairs] == [3, 3]


def test_infinity_classifies_in_its_own_shape(api: Api):
    answer = api.ok("/classify", {"input": ["good", "bad"], "model": "table"})
    assert answer["object"] == "classify"
    assert [rows[0]["label"] for rows in answer["data"]] == ["praise", "complaint"]
    assert by_name(answer["data"][0]) == pytest.approx(softmax(MOODS["good"]), abs=1e-6)
    raw = api.ok("/classify", {"input": ["good"], "model": "table", "raw_scores": True})
    assert by_name(raw["data"][0]) == pytest.approx(MOODS["good"])


@pytest.mark.parametrize("path", ["/", "/invocations"])
def test_the_aliases_predict_where_the_only_model_is_a_classifier(api: Api, path):
    assert api.ok(path, {"inputs": "good"})[0]["label"] == "praise"


def test_it_says_what_it_is(api: Api):
    info = api.get("/info").json()
    assert info["model_type"] == {
        "classifier": {"id2label": NAMES, "label2id": {v: int(k) for k, v in NAMES.items()}}
    }
    (listed,) = api.get("/models").json()["data"]
    assert listed["capabilities"] == ["classify"]


def test_what_it_cannot_do_is_refused_with_a_reason(api: Api):
    assert api.post("/embed", {"inputs": "good"}).status_code == 404
    answer = api.post("/v1/embeddings", {"input": "good", "model": "table"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "wrong-kind"


def test_a_text_that_is_too_long_says_so_or_is_refused(api: Api):
    long = "good " * 600
    answer = api.post("/predict", {"inputs": long})
    assert answer.status_code == 200
    assert answer.headers["x-truncated"] == "1"
    assert api.post("/predict", {"inputs": long, "truncate": False}).status_code == 422


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"problem_type": MULTI}, [1 / (1 + exp(-x)) for x in MOODS["good"]]),
        ({"problem_type": "regression"}, list(MOODS["good"])),
        ({}, softmax(MOODS["good"])),
    ],
)
def test_the_kind_of_problem_says_what_the_logits_mean(tmp_path: Path, config, expected):
    write_table(tmp_path, MOODS, "logits", id2label=NAMES, **config)
    with serving(tmp_path, "classifier") as api:
        assert by_name(api.ok("/predict", {"inputs": "good"})) == pytest.approx(expected, abs=1e-6)


def test_one_logit_alone_is_a_probability_under_a_made_up_name(tmp_path: Path):
    write_table(tmp_path, {"good": (2.0,)}, "logits")
    with serving(tmp_path, "classifier") as api:
        (only,) = api.ok("/predict", {"inputs": "good"})
        assert only == {"score": pytest.approx(1 / (1 + exp(-2)), abs=1e-6), "label": "LABEL_0"}


def test_scores_of_huge_logits_stay_numbers(tmp_path: Path):
    write_table(tmp_path, {"good": (1e4, -1e4, 0.0)}, "logits", id2label=NAMES, problem_type=MULTI)
    with serving(tmp_path, "classifier") as api:
        assert by_name(api.ok("/predict", {"inputs": "good"})) == [1.0, 0.0, 0.5]


def test_labels_that_do_not_fit_the_logits_are_refused_at_start(tmp_path: Path):
    write_table(tmp_path, MOODS, "logits", id2label={"0": "only"})
    with pytest.raises(ModelUnavailable, match="3 logits"):
        open_classifier(f"dir:{tmp_path}")


# -- answers that cannot be used ------------------------------------------------------------------

VECTORS = {
    "fine": (3.0, 4.0),
    "zero": (0.0, 0.0),
    "nan": (nan, 1.0),
    "inf": (inf, 1.0),
    "minus": (-3.0, -4.0),
    "first": (1.0, 0.0),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = write_table(tmp_path_factory.mktemp("vectors"), VECTORS, "sentence_embedding")
    with serving(folder, "embedding") as served:
        yield served


def usable(answer: Any) -> None:
    assert answer.status_code in {424, 500}
    assert "NaN" not in answer.text
    assert "Infinity" not in answer.text
    answer.json()


@pytest.mark.parametrize("word", ["zero", "nan", "inf", "fine minus"])
@pytest.mark.parametrize("asked", [1, 2])
def test_a_vector_that_is_none_is_a_typed_error_whoever_asks_and_however_often(
    vectors: Api, word, asked
):
    for _ in range(asked):
        openai = vectors.post("/v1/embeddings", {"input": word})
        usable(openai)
        assert openai.json()["error"]["code"] == "bad-output"
        for path in ("/embed", "/"):
            tei = vectors.post(path, {"inputs": ["fine", word]})
            usable(tei)
            assert tei.json()["error_type"] == "Backend"
        usable(vectors.post("/embed", {"inputs": word, "normalize": False}))
        usable(vectors.post("/embeddings", {"input": word, "model": "table", "modality": "text"}))
        likeness = {"inputs": {"source_sentence": "fine", "sentences": [word]}}
        usable(vectors.post("/similarity", likeness))
    assert vectors.ok("/embed", {"inputs": "fine"}) == [pytest.approx([0.6, 0.8])]


def test_fewer_dimensions_of_a_good_vector_may_be_a_zero_vector_too(vectors: Api):
    assert vectors.ok("/embed", {"inputs": "first", "dimensions": 1}) == [[1.0]]
    swapped = vectors.post("/embed", {"inputs": "zero", "dimensions": 1})
    usable(swapped)


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_scores_that_are_none_are_typed_errors(tmp_path: Path, word):
    write_table(tmp_path, {"fine": (1.0,), "nan": (nan,), "inf": (inf,)}, "logits")
    with serving(tmp_path, "rerank", labels=["fine"]) as api:
        ranked = api.post("/rerank", {"query": "fine", "texts": ["fine", word]})
        usable(ranked)
        cohere = api.post("/v2/rerank", {"query": "fine", "documents": ["fine", word]})
        usable(cohere)
        assert isinstance(cohere.json()["message"], str)
        usable(api.post("/classify", {"input": [word], "model": "table"}))
        assert api.ok("/rerank", {"query": "fine", "texts": ["fine"]})[0]["index"] == 0
