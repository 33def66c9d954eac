"""Embeddings as OpenAI's API and text-embeddings-inference take them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.latency.targets.posted import BadAnswer, Posted, usage_tokens


def openai_embeddings(
    url: str,
    texts: Sequence[str],
    *,
    model: str,
    batch: int = 1,
    headers: Mapping[str, str] | None = None,
) -> Posted:
    """POST `url` + /embeddings, where `url` ends in the version (".../v1")."""

    def body(chosen: Sequence[str]) -> Mapping[str, Any]:
        return {"model": model, "input": list(chosen), "encoding_format": "float"}

    def understand(answer: Any, count: int) -> Mapping[str, Any]:
        data = answer.get("data") if isinstance(answer, Mapping) else None
        if not isinstance(data, list) or len(data) != count:
            raise BadAnswer(f"not {count} embedding{'s' if count > 1 else ''} in the answer's data")
        first = data[0].get("embedding") if isinstance(data[0], Mapping) else None
        told = {"dimensions": len(first)} if isinstance(first, list) else {}
        return {**told, **usage_tokens(answer), **_model(answer)}

    endpoint = url.rstrip("/") + "/embeddings"
    return Posted("openai-embeddings", endpoint, texts, body, understand, batch, headers or {})


def tei_embed(
    url: str, texts: Sequence[str], *, batch: int = 1, headers: Mapping[str, str] | None = None
) -> Posted:
    """POST `url` + /embed."""

    def body(chosen: Sequence[str]) -> Mapping[str, Any]:
        return {"inputs": list(chosen)}

    def understand(answer: Any, count: int) -> Mapping[str, Any]:
        if not isinstance(answer, list) or len(answer) != count:
            raise BadAnswer(f"not {count} embedding{'s' if count > 1 else ''} in the answer")
        return {"dimensions": len(answer[0])} if isinstance(answer[0], list) else {}

    return Posted("tei", url.rstrip("/") + "/embed", texts, body, understand, batch, headers or {})


def _model(answer: Mapping[str, Any]) -> dict[str, str]:
    model = answer.get("model")
    return {"model": model} if isinstance(model, str) else {}
