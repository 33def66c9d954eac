"""The dialect of text-embeddings-inference: its shapes, its headers, its errors."""

import numpy as np
import pytest

from apis import E5, LABELS, REVIEWS, TOPICS, Api, opened, serving_api, tiny_offer
from tables import write_table

pytestmark = pytest.mark.model

TEXTS = ["친절하고 맛있어요", "주차가 불편해요", "The soup was cold"]
LONG = "오래 기다렸어요 " * 600
TIMES = ("x-total-time", "x-tokenization-time", "x-queue-time", "x-inference-time")


def tei_error(answer, status, kind):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error", "error_type"}
    assert answer.json()["error_type"] == kind
    return answer.json()["error"]


# -- embedding --------------------------------------------------------------------------------


def test_one_text_comes_back_as_a_list_of_one_vector(api: Api):
    (vector,) = api.ok("/embed", {"inputs": TEXTS[0]})
    assert len(vector) == 384
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_vectors_come_in_the_order_of_the_texts(api: Api):
    together = np.array(api.ok("/embed", {"inputs": TEXTS}))
    for text, vector in zip(TEXTS, together, strict=True):
        (alone,) = api.ok("/embed", {"inputs": text})
        assert vector @ np.array(alone) > 0.9999


@pytest.mark.parametrize("path", ["/", "/invocations"])
def test_the_aliases_do_what_the_body_asks(api: Api, path):
    assert api.ok(path, {"inputs": TEXTS[0]}) == api.ok("/embed", {"inputs": TEXTS[0]})
    ranks = {"query": "주차", "texts": TEXTS}
    assert api.ok(path, ranks) == api.ok("/rerank", ranks)
    pairs = {"inputs": [["a", "b"]], "model": REVIEWS}
    assert api.ok(path, pairs) == api.ok("/predict", pairs)
    alike = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}
    assert api.ok(path, alike) == api.ok("/similarity", alike)


def test_a_prompt_changes_the_vector_and_is_what_its_name_says(api: Api):
    (plain,) = api.ok("/embed", {"inputs": "주차"})
    (asked,) = api.ok("/embed", {"inputs": "주차", "prompt_name": "query"})
    (spelled,) = api.ok("/embed", {"inputs": "query: 주차"})
    assert plain != asked
    assert asked == spelled
    said = tei_error(
        api.post("/embed", {"inputs": "a", "prompt_name": "nobody"}), 422, "Validation"
    )
    assert "query" in said


def test_fewer_dimensions_are_the_first_ones_at_unit_length(api: Api):
    (full,) = api.ok("/embed", {"inputs": TEXTS[0]})
    (short,) = api.ok("/embed", {"inputs": TEXTS[0], "dimensions": 64})
    first = np.array(full[:64])
    np.testing.assert_allclose(short, first / np.linalg.norm(first), atol=1e-6)
    (bare,) = api.ok("/embed", {"inputs": TEXTS[0], "dimensions": 64, "normalize": False})
    assert np.linalg.norm(bare) < 1


def test_token_ids_are_those_that_tokenize_gives(api: Api):
    (pieces,) = api.ok("/tokenize", {"inputs": TEXTS[0]})
    ids = [piece["id"] for piece in pieces]
    assert api.ok("/embed", {"inputs": ids}) == api.ok("/embed", {"inputs": TEXTS[0]})
    both = api.ok("/embed", {"inputs": [TEXTS[0], ids]})
    assert both[0] == both[1]


def test_truncation_is_told_or_refused(api: Api):
    answer = api.post("/embed", {"inputs": [LONG, "short"]})
    assert answer.status_code == 200
    assert answer.headers["x-truncated"] == "1"
    assert "x-truncated" not in api.post("/embed", {"inputs": "short"}).headers
    refused = api.post("/embed", {"inputs": [LONG, "short"], "truncate": False})
    assert "512 tokens" in tei_error(refused, 422, "Validation")


def test_truncation_keeps_the_side_that_is_asked_for(api: Api):
    ended = {"inputs": "가 " * 600 + "마지막은 주차 이야기"}
    right, left = (
        api.ok("/embed", {**ended, "truncation_direction": side}) for side in ("Right", "left")
    )
    assert right != left
    ends = {"query": "주차", "texts": [ended["inputs"]], "raw_scores": True}
    (kept,) = api.ok("/rerank", {**ends, "truncation_direction": "Left"})
    (lost,) = api.ok("/rerank", ends)
    assert kept["score"] != lost["score"]


def test_vectors_by_token_are_refused_with_a_reason_where_the_graph_has_none(tmp_path):
    folder = write_table(tmp_path, {"a": (1.0, 2.0)}, "sentence_embedding")
    with serving_api(models=[tiny_offer(folder)]) as api:
        said = tei_error(api.post("/embed_all", {"inputs": "a"}), 424, "Backend")
        assert "last_hidden_state" in said
        tei_error(api.post("/embed_sparse", {"inputs": "a"}), 424, "Backend")


def test_the_offline_model_gives_a_vector_for_each_token_whose_mean_is_the_embedding(api: Api):
    asked = {"inputs": TEXTS, "prompt_name": "query"}
    rows = api.ok("/embed_all", asked)
    assert [len(row) for row in rows] == [len(pieces) for pieces in api.ok("/tokenize", asked)]
    for row, vector in zip(rows, api.ok("/embed", asked), strict=True):
        mean = np.mean(row, axis=0)
        np.testing.assert_allclose(mean / np.linalg.norm(mean), vector, atol=1e-5)


def test_vectors_by_token_come_one_for_each_where_the_graph_has_them(
    tiny_token_embedder_folder, real_embedder, real_cross_encoder
):
    opening = opened(real_embedder, real_cross_encoder)
    with serving_api(opening, models=[tiny_offer(tiny_token_embedder_folder)]) as api:
        asked = {"inputs": ["abc", "a", "abc"], "prompt_name": "query"}
        rows = api.ok("/embed_all", asked)
        assert [len(row) for row in rows] == [len(pieces) for pieces in api.ok("/tokenize", asked)]
        assert rows[0] == rows[2]
        assert {len(vector) for row in rows for vector in row} == {64}
        mean = np.mean(rows[0], axis=0)
        vector = api.ok("/embed", {**asked, "normalize": False})[0]
        np.testing.assert_allclose(vector, mean, atol=1e-5)


def test_similarity_is_the_cosine_of_the_embeddings(api: Api):
    asked = {"source_sentence": TEXTS[0], "sentences": TEXTS}
    likeness = api.ok("/similarity", {"inputs": asked, "parameters": {"prompt_name": "query"}})
    vectors = np.array(api.ok("/embed", {"inputs": TEXTS, "prompt_name": "query"}))
    np.testing.assert_allclose(likeness, vectors @ vectors[0], atol=1e-5)


# -- pairs ------------------------------------------------------------------------------------


def test_rerank_is_a_bare_list_the_best_first(api: Api):
    ranks = api.ok("/rerank", {"query": "주차", "texts": TEXTS, "return_text": True})
    assert [set(rank) for rank in ranks] == [{"index", "score", "text"}] * 3
    assert [TEXTS[rank["index"]] for rank in ranks] == [rank["text"] for rank in ranks]
    assert ranks[0]["index"] == 1
    scores = [rank["score"] for rank in ranks]
    assert scores == sorted(scores, reverse=True)
    raw = api.ok("/rerank", {"query": "주차", "texts": TEXTS, "raw_scores": True})
    assert [set(rank) for rank in raw] == [{"index", "score"}] * 3
    np.testing.assert_allclose(scores, [1 / (1 + np.exp(-r["score"])) for r in raw], atol=1e-6)


def test_a_flat_list_of_two_is_one_pair(api: Api):
    (one,) = api.ok("/predict", {"inputs": [TEXTS[1], "주차"]})
    assert one["label"] == "LABEL_0"
    batch = api.ok("/predict", {"inputs": [[TEXTS[1], "주차"], [TEXTS[0], "주차"]]})
    assert batch[0] == [one]
    assert batch[0][0]["score"] > batch[1][0]["score"]


def test_lone_texts_are_scored_against_the_labels_of_the_offer(api: Api):
    one = api.ok("/predict", {"inputs": TEXTS[1]})
    assert one[0]["label"] == "주차"
    assert {row["label"] for row in one} == set(LABELS)
    batch = api.ok("/predict", {"inputs": [[TEXTS[1]], [TEXTS[0]]]})
    assert batch[0] == one
    tei_error(api.post("/predict", {"inputs": [["a"], ["a", "b"]]}), 422, "Validation")


def test_lone_texts_without_labels_are_refused_with_a_reason(real_embedder, real_cross_encoder):
    with serving_api(opened(real_embedder, real_cross_encoder)) as api:
        said = tei_error(api.post("/predict", {"inputs": "a"}), 424, "Backend")
        assert "labels" in said


# -- tokens -----------------------------------------------------------------------------------


def test_tokens_say_where_they_stand(api: Api):
    text = "친절 and warm"
    (pieces,) = api.ok("/tokenize", {"inputs": text})
    assert [set(piece) for piece in pieces] == [{"id", "text", "special", "start", "stop"}] * len(
        pieces
    )
    assert pieces[0]["special"]
    assert pieces[0]["start"] is pieces[0]["stop"] is None
    for piece in pieces:
        if not piece["special"]:
            assert piece["text"] == text[piece["start"] : piece["stop"]]
    (bare,) = api.ok("/tokenize", {"inputs": [text], "add_special_tokens": False})
    assert bare == pieces[1:-1]


def test_decode_turns_tokens_back_into_text(api: Api):
    (pieces,) = api.ok("/tokenize", {"inputs": "친절 and warm"})
    ids = [piece["id"] for piece in pieces]
    assert api.ok("/decode", {"ids": ids}) == ["친절 and warm"]
    whole = api.ok("/decode", {"ids": [ids, ids], "skip_special_tokens": False})
    assert whole[0] == whole[1] != "친절 and warm"
    for bad in ([-1], [10**7], [2**70], ["a"], [True], [[1], "a"], []):
        assert api.post("/decode", {"ids": bad}).status_code in {400, 422}


# -- about ------------------------------------------------------------------------------------


def test_info_says_what_is_served(api: Api):
    info = api.get("/info").json()
    assert info["model_id"] == info["served_model_name"] == E5
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert info["max_input_length"] == 512
    assert set(info) >= {
        "model_sha",
        "model_dtype",
        "max_concurrent_requests",
        "max_batch_tokens",
        "max_batch_requests",
        "max_client_batch_size",
        "auto_truncate",
        "tokenization_workers",
        "version",
        "sha",
        "docker_label",
    }
    other = api.get("/info", params={"model": REVIEWS}).json()
    assert set(other["model_type"]) == {"reranker"}
    assert api.get(f"/tei/{REVIEWS}/info").json() == other
    assert (
        api.get(f"/tei/{TOPICS}/info").json()["model_type"]["classifier"]["id2label"]["1"] == "주차"
    )
    tei_error(api.get("/info", params={"model": "nobody"}), 404, "Validation")
    tei_error(api.post("/tei/nobody/embed", {"inputs": "a"}), 404, "Validation")
    tei_error(api.post(f"/tei/{REVIEWS}/embed", {"inputs": "a"}), 422, "Validation")


@pytest.mark.parametrize("path", ["/health", "/ping", "/", f"/tei/{REVIEWS}/health"])
def test_health_is_200_and_a_moment(api: Api, path):
    answer = api.get(path)
    assert answer.status_code == 200
    assert answer.json()["unix"] > 1.7e9


def test_timing_headers_are_whole_milliseconds_of_the_same_stamps(api: Api):
    answer = api.post("/embed", {"inputs": [f"{text} once" for text in TEXTS]})
    total, *parts = (int(answer.headers[name]) for name in TIMES)
    assert sum(parts) <= total
    assert answer.headers["x-compute-type"] == "cpu"
    assert int(answer.headers["x-compute-tokens"]) > 9
    assert int(answer.headers["x-compute-characters"]) == sum(len(f"{t} once") for t in TEXTS)


@pytest.mark.parametrize("status", [422, 413])
def test_a_setting_chooses_the_status_of_input_that_cannot_be_used(
    real_embedder, real_cross_encoder, status
):
    opening = opened(real_embedder, real_cross_encoder)
    with serving_api(opening, dialects__tei_validation_status=status) as api:
        tei_error(api.post("/embed", {"inputs": [""]}), status, "Validation")


def test_the_default_prompt_stands_before_texts_of_requests_that_name_none(
    tiny_embedder_folder, real_embedder, real_cross_encoder
):
    opening = opened(real_embedder, real_cross_encoder)
    offers = [tiny_offer(tiny_embedder_folder, default_prompt="query")]
    with serving_api(opening, models=offers) as served:
        plain, asked, other = (
            served.ok("/embed", {"inputs": "abc", **prompt})
            for prompt in ({}, {"prompt_name": "query"}, {"prompt_name": "passage"})
        )
        assert plain == asked != other
