"""Rerank as Cohere, Jina and text-embeddings-inference take it: documents ranked for one query."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tailrace.latency.targets.posted import BadAnswer, Posted, usage_tokens

Flavour = Literal["cohere", "jina", "tei"]
PATHS: dict[Flavour, str] = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}


def rerank(
    url: str,
    texts: Sequence[str],
    *,
    flavour: Flavour,
    query: str,
    model: str = "",
    batch: int = 8,
    headers: Mapping[str, str] | None = None,
) -> Posted:
    """POST the flavour's path below `url`; `batch` documents per request are ranked for `query`."""

    def body(chosen: Sequence[str]) -> Mapping[str, Any]:
        if flavour == "tei":
            return {"query": query, "texts": list(chosen)}
        named = {"model": model} if model else {}
        return {**named, "query": query, "documents": list(chosen), "top_n": len(chosen)}

    def understand(answer: Any, count: int) -> Mapping[str, Any]:
        results = answer.get("results") if isinstance(answer, Mapping) else answer
        if not isinstance(results, list) or len(results) != count:
            raise BadAnswer(f"not {count} results in the answer")
        return usage_tokens(answer) if isinstance(answer, Mapping) else {}

    endpoint = url.rstrip("/") + PATHS[flavour]
    kind = f"{flavour}-rerank"
    return Posted(kind, endpoint, texts, body, understand, batch, headers or {})
