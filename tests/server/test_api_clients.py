"""Clients that people have, unchanged but for an address, against the model server."""

import base64
import gc
import importlib
import os
import sys
from collections.abc import Iterator

import matrix
import numpy as np
import pytest
from matrix import need, proves

from apis import E5, LABELS, REVIEWS, TOPICS, Api

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

TEXTS = ["친절하고 맛있어요", "주차가 불편해요", "The soup was cold"]
QUERY = "주차"
BEST = 1


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy on the way, and nothing of a client left for the next test."""
    monkeypatch.setenv("NO_PROXY", "*")
    yield
    if hub := sys.modules.get("huggingface_hub"):
        hub.close_session()
    gc.collect()


def vectors(api: Api, texts: list[str], **more: str) -> np.ndarray:
    return np.array(api.ok("/embed", {"inputs": texts, **more}))


# -- OpenAI -----------------------------------------------------------------------------------


@proves(
    "openai", "base_url=URL/v1", "`/v1/embeddings`, `/v1/models`", "base64 by default; `dimensions`"
)
def test_openai_embeds_and_lists_models(api: Api):
    openai = need("openai")
    with openai.OpenAI(base_url=f"{api.url}/v1", api_key="any") as client:
        reply = client.embeddings.create(model=E5, input=TEXTS)
        made = [item.embedding for item in reply.data]
        np.testing.assert_allclose(made, vectors(api, TEXTS), atol=1e-6)
        assert reply.usage.total_tokens > 9
        plain = client.embeddings.create(model=E5, input=TEXTS[0], encoding_format="float")
        np.testing.assert_allclose(plain.data[0].embedding, made[0], atol=1e-6)
        raw = client.embeddings.create(model=E5, input=TEXTS[0], encoding_format="base64")
        bare = np.frombuffer(base64.b64decode(raw.data[0].embedding), "<f4")
        np.testing.assert_allclose(bare, made[0], atol=1e-6)
        short = client.embeddings.create(model=E5, input=TEXTS[0], dimensions=32)
        assert len(short.data[0].embedding) == 32
        assert [model.id for model in client.models.list()] == [E5, REVIEWS, TOPICS]
        with pytest.raises(openai.NotFoundError) as missing:
            client.embeddings.create(model="nobody", input="a")
        assert missing.value.code == "unknown-model"
        with pytest.raises(openai.BadRequestError, match="empty"):
            client.embeddings.create(model=E5, input=[])


def test_openai_works_without_v1(api: Api):
    openai = need("openai")
    with openai.OpenAI(base_url=api.url, api_key="any") as client:
        reply = client.embeddings.create(model=E5, input=TEXTS[0])
        np.testing.assert_allclose(reply.data[0].embedding, vectors(api, TEXTS[:1])[0], atol=1e-6)
        assert len(list(client.models.list())) == 3
        with pytest.raises(openai.BadRequestError) as bad:
            client.embeddings.create(model=E5, input="a", dimensions=4000)
        assert bad.value.type == "invalid_request_error"


@proves(
    "langchain-openai",
    "base_url=URL/v1",
    "`/v1/embeddings`",
    "needs `check_embedding_ctx_length=False`: else it sends OpenAI's token ids, a 400 that names the flag",
)
def test_langchain_openai_embeds_texts_and_is_told_about_ids(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    langchain = need("langchain_openai")
    given = {"base_url": f"{api.url}/v1", "api_key": "any", "model": E5}
    embeddings = langchain.OpenAIEmbeddings(check_embedding_ctx_length=False, **given)
    np.testing.assert_allclose(embeddings.embed_documents(TEXTS), vectors(api, TEXTS), atol=1e-6)
    openai, tiktoken = need("openai"), need("tiktoken")
    # OpenAI's vocabulary would be fetched; any other shows as well that ids are sent.
    letters = {bytes([i]): i for i in range(256)}
    ids = tiktoken.Encoding("any", pat_str="(?s:.)", mergeable_ranks=letters, special_tokens={})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", ids)
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length"):
        langchain.OpenAIEmbeddings(**given).embed_documents(TEXTS)


# -- TEI --------------------------------------------------------------------------------------


@proves(
    "huggingface_hub",
    "InferenceClient(URL)",
    "`/`",
    "`/` and `/tei/MODEL` stand for TEI's one model",
)
def test_huggingface_hub_embeds_compares_and_classifies(api: Api):
    hub = need("huggingface_hub")
    client = hub.InferenceClient(api.url)
    made = client.feature_extraction(TEXTS[0], prompt_name="query", normalize=True, truncate=True)
    np.testing.assert_allclose(made, vectors(api, TEXTS[:1], prompt_name="query"), atol=1e-6)
    likeness = client.sentence_similarity(TEXTS[0], TEXTS)
    assert likeness[0] == pytest.approx(1.0, abs=1e-4)
    labels = hub.InferenceClient(f"{api.url}/tei/{TOPICS}/").text_classification(TEXTS[BEST])
    assert labels.label == QUERY  # it keeps the first of the flat list that TEI answers
    from huggingface_hub.errors import HfHubHTTPError

    with pytest.raises(HfHubHTTPError, match="Available prompts"):
        client.feature_extraction("a", prompt_name="nobody")


@proves(
    "tei-client",
    "url=URL/tei/MODEL",
    "`/info`, `/embed`, `/rerank`, `/predict`, `/tokenize`, `/decode`",
)
def test_tei_client_does_all_it_can(api: Api):
    tei = need("tei_client")
    client = tei.HttpClient(api.url)
    assert client.health()
    np.testing.assert_allclose(client.embed(TEXTS), vectors(api, TEXTS), atol=1e-6)
    assert client.prompt_names() == ["query", "passage"]
    (read,) = client.tokenize("친절 and warm")
    assert client.decode(read.get_ids()) == ["친절 and warm"]
    ranks = tei.HttpClient(f"{api.url}/tei/{REVIEWS}").rerank(QUERY, TEXTS, return_text=True).ranks
    assert (ranks[0].index, ranks[0].text) == (BEST, TEXTS[BEST])
    (scored,) = tei.HttpClient(f"{api.url}/tei/{TOPICS}").classify(TEXTS[BEST])
    assert {score.label for score in scored.scores} == set(LABELS)


@proves(
    "llama-index-embeddings-text-embeddings-inference",
    "base_url=URL",
    "`/embed`",
    "never looks at the status: a refusal surfaces as a KeyError, so give it a line to wait in",
)
def test_llama_index_embeds_through_tei(api: Api):
    module = need("llama_index.embeddings.text_embeddings_inference")
    client = module.TextEmbeddingsInference(base_url=api.url, model_name=E5)
    made = client.get_text_embedding_batch(TEXTS)
    expected = [client.get_text_embedding(text) for text in TEXTS]
    np.testing.assert_allclose(made, expected, atol=1e-3)
    assert len(client.get_query_embedding(QUERY)) == 384


@proves(
    "llama-index-postprocessor-tei-rerank", "base_url=URL", "`/rerank` with `texts`", "as above"
)
def test_llama_index_reranks_through_tei(api: Api):
    module = need("llama_index.postprocessor.tei_rerank")
    ranker = module.TextEmbeddingInference(base_url=api.url, model_name=REVIEWS, top_n=2)
    check_nodes(ranker)


# -- documents --------------------------------------------------------------------------------


def check_nodes(ranker) -> None:
    """A ranker of llama-index finds the best text."""
    schema = need("llama_index.core.schema")
    nodes = [schema.NodeWithScore(node=schema.TextNode(text=text)) for text in TEXTS]
    ranked = ranker.postprocess_nodes(nodes, query_str=QUERY)
    assert len(ranked) == 2
    assert ranked[0].node.text == TEXTS[BEST]
    assert ranked[0].score > ranked[1].score


@proves("cohere", "base_url=URL", "`/v1/rerank`, `/v2/rerank`")
def test_cohere_reranks_in_both_versions(api: Api):
    cohere = need("cohere")
    second = cohere.ClientV2(api_key="any", base_url=api.url)
    made = second.rerank(model=REVIEWS, query=QUERY, documents=TEXTS, top_n=2)
    assert [made.results[0].index, len(made.results)] == [BEST, 2]
    assert made.meta.billed_units.search_units == 1
    first = cohere.Client(api_key="any", base_url=api.url)
    old = first.rerank(model=REVIEWS, query=QUERY, documents=TEXTS, return_documents=True)
    assert old.results[0].document.text == TEXTS[BEST]
    assert old.results[0].relevance_score == made.results[0].relevance_score
    with pytest.raises(cohere.BadRequestError) as bad:
        second.rerank(model=REVIEWS, query="", documents=TEXTS)
    assert "query" in bad.value.body["message"]
    with pytest.raises(cohere.NotFoundError):
        second.rerank(model="nobody", query=QUERY, documents=TEXTS)


@proves("langchain-cohere", "base_url=URL", "`/v2/rerank`")
def test_langchain_cohere_reranks(api: Api):
    module = need("langchain_cohere")
    ranker = module.CohereRerank(
        model=REVIEWS, base_url=api.url, cohere_api_key="any", top_n=2, user_agent="test"
    )
    ranked = ranker.rerank(TEXTS, QUERY)
    assert [ranked[0]["index"], len(ranked)] == [BEST, 2]


@proves(
    "llama-index-postprocessor-cohere-rerank",
    "base_url=URL",
    "`/v2/rerank`",
    "tries again up to 10 times on 500, 503 and 504, not on 429",
)
def test_llama_index_reranks_through_cohere(api: Api):
    module = need("llama_index.postprocessor.cohere_rerank")
    check_nodes(module.CohereRerank(base_url=api.url, api_key="any", model=REVIEWS, top_n=2))


@proves(
    "llama-index-postprocessor-jinaai-rerank",
    "base_url=URL/v1",
    "`/v1/rerank`",
    "reads `detail` of an error",
)
def test_llama_index_reranks_through_jina(api: Api):
    module = need("llama_index.postprocessor.jinaai_rerank")
    given = {"base_url": f"{api.url}/v1", "api_key": "any", "top_n": 2}
    ranker = module.JinaRerank(model=REVIEWS, **given)
    check_nodes(ranker)
    lost = module.JinaRerank(model="nobody", **given)
    with pytest.raises(RuntimeError, match="nobody"):
        check_nodes(lost)
    for made in (ranker, lost):
        made._session.close()


# -- Infinity ---------------------------------------------------------------------------------


@proves(
    "infinity-client",
    "base_url=URL",
    "`/embeddings`, `/rerank`, `/classify`, `/models`, `/health`",
    "pins httpx below 0.28, works with it",
)
def test_infinity_client_does_all_it_can(api: Api):
    module = need("infinity_client")
    from infinity_client import models
    from infinity_client.api.default import classify, embeddings, health, rerank
    from infinity_client.api.default import models as listing

    with module.Client(base_url=api.url) as client:
        assert health.sync(client=client)["unix"] > 1.7e9
        assert [m.id for m in listing.sync(client=client).data] == [E5, REVIEWS, TOPICS]
        asked = models.OpenAIEmbeddingInputText(input_=TEXTS)
        reply = embeddings.sync(client=client, body=asked)
        made = [item.embedding for item in reply.data]
        np.testing.assert_allclose(made, vectors(api, TEXTS), atol=1e-6)
        order = models.RerankInput(query=QUERY, documents=TEXTS, return_documents=True, top_n=2)
        ranked = rerank.sync(client=client, body=order).results
        assert (ranked[0].index, ranked[0].document) == (BEST, TEXTS[BEST])
        labels = classify.sync(client=client, body=models.ClassifyInput(input_=TEXTS))
        assert {score.label for score in labels.data[0]} == set(LABELS)
        bad = rerank.sync(client=client, body=models.RerankInput(query="", documents=TEXTS))
        assert isinstance(bad, models.HTTPValidationError)


# -- the page ---------------------------------------------------------------------------------


def test_the_page_of_clients_is_written_when_asked_for(request: pytest.FixtureRequest):
    if not os.environ.get("TAILRACE_WRITE_CLIENTS"):
        pytest.skip("`make client-matrix` writes it")
    assert request.session.testsfailed == 0, "what failed is not proved"
    importlib.import_module("test_api_litellm")
    matrix.PAGE.write_text(matrix.page(), encoding="utf-8")
