"""The OpenAI dialect: /v1/embeddings, /v1/models, and both without /v1.

Shapes and errors as the openai client reads them. Token-id input is refused: ids of another model's
vocabulary mean nothing here.
"""

import base64
from typing import Any

import orjson

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.dialect import Dialect, told
from tailrace.serve.exchange import Exchange
from tailrace.serve.problems import Answer, json_answer, problem_answer

CREATED = 1_700_000_000
"""Models have no date of birth here; clients want a number."""

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}


class OpenAI(Dialect):
    """Embeddings as OpenAI offers them."""

    tag = "openai"

    def add_routes(self) -> None:
        """Every entry with and without /v1."""
        for prefix in ("/v1", ""):
            self.post(f"{prefix}/embeddings", self._embeddings, summary="Embed texts")
        self.get("/v1/models", self._models, summary="The models on offer")

    def on_error(self, error: TailraceError) -> Answer:
        """{"error": {message, type, param, code}}; what cannot be used is a 400 here."""
        made = problem_answer(error)
        status = 400 if made.status in {413, 415, 422} else made.status
        kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        body = {"message": str(error), "type": kind, "param": None, "code": error.code}
        headers = {
            **made.headers,
            "Content-Type": "application/json",
            **should_retry(status, error),
        }
        return Answer(status, orjson.dumps({"error": body}), headers)

    async def _embeddings(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.embedder(named(body))
            texts = self._input(body.get("input"))
            encoding = body.get("encoding_format") or "float"
            if encoding not in {"float", "base64"}:
                raise InputError("`encoding_format` must be float or base64.")
            dimensions = body.get("dimensions")
            if dimensions is not None and (not isinstance(dimensions, int) or dimensions is True):
                raise InputError("`dimensions` must be an integer.")
            terms = self.terms(exchange, len(texts))
        prompt = prompt_of(body, model.prompts)
        made = await model.embed(exchange, texts, terms, prompt=prompt, dimensions=dimensions)
        with exchange.part("serialize"):
            vectors: list[Any] = list(made.vectors)
            if encoding == "base64":
                vectors = [base64.b64encode(v.astype("<f4").tobytes()).decode() for v in vectors]
            tokens = made.answered.tokens_total
            data = [
                {"object": "embedding", "index": i, "embedding": vector}
                for i, vector in enumerate(vectors)
            ]
            reply = {
                "object": "list",
                "data": data,
                "model": made.answered.fallback or model.served.name,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
            return json_answer(reply, 200, told(made.answered))

    def _input(self, given: Any) -> list[str]:
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, list):
            raise InputError("`input` must be a string or a list of strings.")
        self.check_count(given, "input")
        if any(isinstance(item, int | list) for item in given):
            raise InputError(
                "`input` holds token ids; they mean nothing to this model. Send texts "
                "(LangChain: check_embedding_ctx_length=False)."
            )
        return [self.check_text(item, f"input.{i}") for i, item in enumerate(given)]

    async def _models(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        del exchange, body
        data = [
            {"id": offer.served.name, "object": "model", "created": CREATED, "owned_by": "tailrace"}
            for offer in self.front.catalogue.offers
        ]
        return json_answer({"object": "list", "data": data})


def named(body: dict[str, Any]) -> str | None:
    """The name of the model asked for, if there is one."""
    name = body.get("model")
    if name is not None and not isinstance(name, str):
        raise InputError("`model` must be a string.")
    return name


def prompt_of(body: dict[str, Any], prompts: Any) -> str | None:
    """The prompt asked for: `prompt_name`, or Cohere's and Jina's `input_type` in the model's words."""
    name = body.get("prompt_name")
    if name is None:
        kinds = {"query": "query", "search_query": "query", "document": "passage"}
        kinds |= {"passage": "passage", "search_document": "passage"}
        asked = body.get("input_type")
        name = kinds.get(str(asked)) if asked is not None else None
        if asked is not None and name is None:
            raise InputError(f"`input_type` must be one of {', '.join(kinds)}.")
    if name is not None and name not in prompts:
        raise InputError(f"`prompt_name` must be one of {', '.join(prompts) or '(none)'}.")
    return name


def should_retry(status: int, error: TailraceError) -> dict[str, str]:
    """The header by which OpenAI's clients decide whether to try again."""
    if status < 429 and status not in {408, 409}:
        return {}
    return {"x-should-retry": "true" if error.back_s is not None else "false"}
