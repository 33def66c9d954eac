"""Input that cannot be used, in every dialect: an answer or a refusal in its own shape."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from apis import REVIEWS, Api

pytestmark = pytest.mark.model

LONE = b'"\\ud800"'
"""A JSON string that is no Unicode text."""
LONG = "오래 기다렸어요 " * 2000


def tei(answer) -> str:
    body = answer.json()
    assert set(body) == {"error", "error_type"}
    kinds = {
        400: {"Empty", "Validation"},
        413: {"Validation"},
        422: {"Validation"},
        424: {"Backend"},
    }
    assert body["error_type"] in kinds[answer.status_code]
    return body["error"]


def openai(answer) -> str:
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    return error["message"]


def infinity(answer) -> str:
    body = answer.json()
    assert answer.status_code in {400, 413, 422}
    assert body["detail"][0]["msg"] == body["error"]["message"]
    assert set(body["detail"][0]) >= {"loc", "msg", "type"}
    return body["error"]["message"]


def cohere(answer) -> str:
    assert answer.status_code == 400
    return answer.json()["message"]


def union(answer) -> str:
    body = answer.json()
    assert answer.status_code in {400, 413, 422}
    assert body["message"] == body["detail"] == body["error"]["message"]
    return body["detail"]


@dataclass(frozen=True)
class Entry:
    """An entry: where texts go in its body, and how it words an error."""

    path: str
    texts: str
    refusal: Callable[[Any], str]
    more: dict[str, Any]
    lone_empty: int = 400
    """What one empty text among others gives."""

    def body(self, texts: Any) -> dict[str, Any]:
        return {**self.more, self.texts: texts}

    def raw(self, texts: bytes) -> bytes:
        """The body with a piece of JSON that no library would write."""
        marked = json.dumps(self.body("@@@"))
        return marked.encode().replace(b'"@@@"', texts)


PAIR = {"query": "주차"}
ENTRIES = [
    Entry("/v1/embeddings", "input", openai, {}),
    Entry("/embeddings", "input", infinity, {"modality": "text"}, 200),
    Entry("/embed", "inputs", tei, {}, 422),
    Entry("/", "inputs", tei, {}, 422),
    Entry("/rerank", "texts", tei, PAIR, 200),
    Entry("/rerank", "documents", infinity, PAIR, 200),
    Entry("/v1/rerank", "documents", union, PAIR, 200),
    Entry("/v2/rerank", "documents", cohere, PAIR, 200),
    Entry("/classify", "input", infinity, {}, 200),
    Entry("/tokenize", "inputs", tei, {}, 422),
]
every_entry = pytest.mark.parametrize(
    "entry", ENTRIES, ids=[f"{entry.path} {entry.texts}" for entry in ENTRIES]
)


def refused(api: Api, entry: Entry, body: Any) -> str:
    answer = api.post(entry.path, body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/json"
    message = entry.refusal(answer)
    assert message
    return message


@every_entry
@pytest.mark.parametrize(
    "texts",
    [
        [],
        None,
        1,
        1.5,
        {},
        True,
        [None],
        [{}],
        [1.5],
        [[]],
        [[None]],
        ["a", None],
        [True],
        ["a", 1],
    ],
    ids=repr,
)
def test_what_is_no_list_of_texts_is_refused(api: Api, entry: Entry, texts):
    refused(api, entry, entry.body(texts))


@every_entry
@pytest.mark.parametrize("raw", [LONE, b"[" + LONE + b"]", b'["a", ' + LONE + b"]"])
def test_a_lone_surrogate_is_refused(api: Api, entry: Entry, raw):
    assert "surrogate" in refused(api, entry, entry.raw(raw)) or raw == LONE


@every_entry
@pytest.mark.parametrize(
    "raw", [b"NaN", b"[NaN]", b"[Infinity]", b"", b"[", b'["a",]', b"\xff", b"[" * 5000]
)
def test_what_is_no_json_is_refused(api: Api, entry: Entry, raw):
    if entry.path == "/rerank":  # whose request it was to be cannot be known
        entry = replace(entry, refusal=infinity)
    assert "JSON" in refused(api, entry, entry.raw(raw))


@every_entry
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"a"', b"1", b"{}"])
def test_a_body_that_is_no_request_is_refused(api: Api, entry: Entry, body):
    answer = api.post(entry.path, body)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.json()


@every_entry
def test_an_empty_text_among_others(api: Api, entry: Entry):
    """Peers differ: OpenAI and TEI refuse it, Infinity embeds it; a document may be empty."""
    answer = api.post(entry.path, entry.body(["a", ""]))
    assert answer.status_code == entry.lone_empty, answer.text


@every_entry
def test_too_many_items_are_refused(api: Api, entry: Entry):
    assert "2048" in refused(api, entry, entry.body(["a"] * 2049))


@every_entry
def test_a_text_beyond_the_limit_is_refused(api: Api, entry: Entry):
    assert "100000" in refused(api, entry, entry.body(["a" * 100_001]))


@every_entry
@pytest.mark.parametrize(
    "texts", [["짧다", LONG], [LONG, "짧다"]], ids=["short first", "long first"]
)
def test_short_and_long_in_either_order_are_answered_and_the_cut_is_told(
    api: Api, entry: Entry, texts
):
    """A text over the token budget of a run neither blocks nor starves its neighbour."""
    answer = api.post(entry.path, entry.body(texts))
    assert answer.status_code == 200, answer.text
    if entry.path != "/tokenize":
        assert int(answer.headers["x-truncated"]) >= 1


@every_entry
def test_an_unknown_model_is_404_and_one_of_another_kind_is_no_5xx(api: Api, entry: Entry):
    assert api.post(entry.path, {**entry.body(["a"]), "model": "nobody"}).status_code == 404
    embeds = entry.texts in {"input", "inputs"} and entry.path not in {
        "/classify",
        "/",
        "/tokenize",
    }
    other = REVIEWS if embeds else "default"
    answer = api.post(entry.path, {**entry.body(["a"]), "model": other})
    assert answer.status_code < 500


@pytest.mark.parametrize("ids", [[1, 2], [[1, 2], [3]], ["a", [1]]])
def test_token_ids_are_refused_where_they_mean_another_model(api: Api, ids):
    for path in ("/v1/embeddings", "/embeddings"):
        answer = api.post(path, {"input": ids})
        assert answer.status_code == 400
        assert "check_embedding_ctx_length" in answer.json()["error"]["message"]


def test_a_nul_is_a_character_like_any_other(api: Api):
    assert api.post("/embed", {"inputs": "a\0b"}).status_code == 200


def test_the_server_still_answers_after_all_this(api: Api):
    assert api.get("/readyz").status_code == 200
    assert len(api.ok("/embed", {"inputs": "a"})) == 1


@pytest.mark.parametrize("modality", ["image", ["text"], {}, 1, False], ids=repr)
def test_a_modality_that_is_not_text_is_refused(api: Api, modality):
    entry = ENTRIES[1]
    assert "modality" in refused(api, entry, {"input": "a", "modality": modality})
