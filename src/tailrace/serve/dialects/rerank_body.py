"""The request that Cohere, Jina, Infinity, vLLM and llama.cpp rerank with: a query and `documents`."""

from dataclasses import dataclass
from typing import Any

from tailrace.core.errors import InputError
from tailrace.serve.dialect import Dialect
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import flag, model_named, whole
from tailrace.serve.reranking import Scored, ServedReranker


@dataclass(frozen=True, slots=True)
class Ranking:
    """What came of a rerank request."""

    model: ServedReranker
    documents: list[str]
    order: list[int]
    """Indices of the documents asked for, the best first."""
    scored: Scored
    with_documents: bool


async def rank(
    dialect: Dialect,
    exchange: Exchange,
    body: dict[str, Any],
    *,
    documents: bool,
    least: int = 1,
) -> Ranking:
    """Read a request and score its documents.

    `documents` is whether they are returned where the request does not say; `least` is the smallest
    `top_n`, 0 where that means all.
    """
    with exchange.part("parse"):
        model = dialect.front.catalogue.reranker(model_named(body))
        query = dialect.check_text(body.get("query"), "query")
        texts = _documents(dialect, body)
        top = whole(body, "top_n", least=least) or len(texts)
        text_max = whole(body, "max_tokens_per_doc")
        with_documents = flag(body, "return_documents", default=documents)
        terms = dialect.terms(exchange, len(texts))
    scored = await model.rerank(exchange, query, texts, terms, text_max=text_max)
    return Ranking(model, texts, scored.best_first()[:top], scored, with_documents)


def _documents(dialect: Dialect, body: dict[str, Any]) -> list[str]:
    """Texts: a document is a string, or an object with the fields that are read.

    `rank_fields` names them; without it that is `text`.
    """
    given = body.get("documents")
    if not isinstance(given, list):
        raise InputError("`documents` must be a list of strings, or of objects with `text`.")
    dialect.check_count(given, "documents")
    fields = body.get("rank_fields") or ["text"]
    if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
        raise InputError("`rank_fields` must be a list of strings.")
    texts = []
    for i, document in enumerate(given):
        if isinstance(document, dict):
            parts = [document.get(name) for name in fields]
            found = [part for part in parts if isinstance(part, str)]
            document = "\n".join(found) if found else None  # noqa: PLW2901
        texts.append(dialect.check_text(document, f"documents.{i}", empty=True))
    return texts
