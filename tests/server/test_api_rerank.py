"""The rerank dialects that send `documents`: Cohere, Jina, Infinity, and who else claims their paths."""

import pytest

from apis import REVIEWS, Api

pytestmark = pytest.mark.model

DOCUMENTS = ["친절하고 맛있어요", "주차가 불편해요", "The soup was cold"]
ASKED = {"model": REVIEWS, "query": "주차", "documents": DOCUMENTS}
LONG = "오래 기다렸어요 " * 600


def order(results):
    return [result["index"] for result in results]


def test_cohere_v2_answers_scores_without_documents(api: Api):
    reply = api.ok("/v2/rerank", {**ASKED, "top_n": 2})
    assert set(reply) == {"id", "results", "meta"}
    assert [set(result) for result in reply["results"]] == [{"index", "relevance_score"}] * 2
    assert reply["results"][0]["index"] == 1
    assert reply["meta"]["api_version"] == {"version": "2"}
    assert reply["meta"]["billed_units"] == {"search_units": 1}
    assert reply["meta"]["tokens"]["input_tokens"] > 9
    assert "warnings" not in reply["meta"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/reranking", "/reranking"])
def test_the_union_answers_everybody(api: Api, path):
    reply = api.ok(path, ASKED)
    assert set(reply) >= {"id", "model", "usage", "results", "meta", "object"}
    assert [set(result) for result in reply["results"]] == [
        {"index", "relevance_score", "document"}
    ] * 3
    assert reply["results"][0]["document"] == {"text": DOCUMENTS[1]}
    assert reply["usage"]["total_tokens"] == reply["meta"]["tokens"]["input_tokens"]
    bare = api.ok(path, {**ASKED, "return_documents": False, "top_n": 0})
    assert [set(result) for result in bare["results"]] == [{"index", "relevance_score"}] * 3


def test_infinity_returns_documents_as_strings(api: Api):
    reply = api.ok("/rerank", {**ASKED, "return_documents": True})
    assert set(reply) == {"object", "results", "model", "usage", "id", "created"}
    assert reply["object"] == "rerank"
    assert reply["results"][0]["document"] == DOCUMENTS[1]
    raw = api.ok("/rerank", {**ASKED, "raw_scores": True})
    assert "document" not in raw["results"][0]
    assert raw["results"][-1]["relevance_score"] < 0


def test_all_dialects_agree_on_the_order_and_the_scores(api: Api):
    replies = [api.ok(path, ASKED)["results"] for path in ("/v1/rerank", "/v2/rerank", "/rerank")]
    pairs = [[(r["index"], r["relevance_score"]) for r in results] for results in replies]
    texts = {"query": "주차", "texts": DOCUMENTS}
    pairs.append([(r["index"], r["score"]) for r in api.ok("/rerank", texts)])
    assert pairs[0] == pairs[1] == pairs[2] == pairs[3]


def test_a_document_may_be_an_object(api: Api):
    objects = [{"text": text, "title": "주차"} for text in DOCUMENTS]
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        plain, made = (
            api.ok(path, {**ASKED, "documents": d})["results"] for d in (DOCUMENTS, objects)
        )
        assert plain == made
    ranked = {**ASKED, "documents": objects, "rank_fields": ["title", "text"]}
    first = api.ok("/v1/rerank", ranked)["results"][0]
    assert first["document"]["text"].startswith("주차\n")


def test_a_document_that_loses_its_end_is_told(api: Api):
    answer = api.post("/v2/rerank", {**ASKED, "documents": [LONG, "short"]})
    assert answer.headers["x-truncated"] == "1"
    assert answer.json()["meta"]["warnings"]
    short = {**ASKED, "max_tokens_per_doc": 2}
    assert api.post("/v2/rerank", short).headers["x-truncated"] == "3"


def test_a_document_may_fill_the_room_whichever_the_model_reads_first(tiny_cross_encoder):
    """The room is 86 tokens: a text of 80 fits beside a short query, one of 100 says what it lost."""
    model = tiny_cross_encoder
    query, fits, long = ([letter] for letter in model.plain("abc")[-3:])
    for text_first in (True, False):
        assert model.fit(query, fits * 80, text_first=text_first).cut == 0
        assert model.fit(query, long * 100, text_first=text_first).cut == 15
        kept = model.fit(query, [*fits, *long * 90], text_first=text_first, left=True)
        assert fits[0] not in kept.ids
        assert model.fit(query * 100, long, text_first=text_first).cut == 15
        assert model.fit(query * 100, long * 100, text_first=text_first).cut == 114


def test_an_error_of_cohere_has_a_message_and_one_of_the_union_all_names(api: Api):
    bad = {**ASKED, "documents": []}
    answer = api.post("/v2/rerank", bad)
    assert answer.status_code == 400
    assert "documents" in answer.json()["message"]
    answer = api.post("/v1/rerank", bad)
    assert answer.status_code == 422
    body = answer.json()
    assert body["message"] == body["detail"] == body["error"]["message"]
    answer = api.post("/rerank", bad)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["msg"] == answer.json()["error"]["message"]
    assert api.post("/v2/rerank", {**ASKED, "model": "nobody"}).status_code == 404


@pytest.mark.parametrize("top_n", [-1, 1.5, "2", True, []])
def test_a_number_of_results_that_is_none_is_refused(api: Api, top_n):
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        assert api.post(path, {**ASKED, "top_n": top_n}).status_code in {400, 422}
