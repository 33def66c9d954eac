"""The OpenAI dialect: /v1/embeddings and /v1/models.

Shapes and errors as the openai client reads them. Token-id input is refused: ids of another model's
vocabulary mean nothing here.
"""

import base64
from typing import Any

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.dialect import Dialect, safe, shaped, status_of, told
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import choice, model_named, prompt_of, whole
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.schemas import OPENAI_EMBEDDINGS

CREATED = 1_700_000_000
"""Models have no date of birth here; clients want a number."""

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}


def openai_error(error: TailraceError) -> tuple[int, dict[str, Any]]:
    """Status and inner body of an error as OpenAI's clients know them."""
    status = status_of(error)
    status = 400 if status in {413, 415, 422} else status
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return status, {"message": safe(error), "type": kind, "param": None, "code": error.code}


class OpenAI(Dialect):
    """Embeddings as OpenAI offers them."""

    tag = "openai"

    def add_routes(self) -> None:
        """Below /v1; the same without /v1 is shared.py's, for Infinity's clients ask there too."""
        self.post("/v1/embeddings", self.embeddings, OPENAI_EMBEDDINGS, summary="Embed texts")
        self.get("/v1/models", self._models, summary="The models on offer")

    def on_error(self, error: TailraceError) -> Answer:
        """{"error": {message, type, param, code}}; what cannot be used is a 400 here."""
        status, inner = openai_error(error)
        if self.front.manners.openai_errors_flat:
            flat = {"message": inner["message"], "code": status, "type": inner["type"]}
            return shaped(error, status, flat)
        return shaped(error, status, {"error": inner})

    async def embeddings(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        """Vectors as numbers or base64."""
        return await self.embed(exchange, body, {})

    async def embed(
        self,
        exchange: Exchange,
        body: dict[str, Any],
        extra: dict[str, Any],
        *,
        empty: bool = False,
    ) -> Answer:
        """The same with more in the reply; `empty` lets empty texts in."""
        with exchange.part("parse"):
            model = self.front.catalogue.embedder(model_named(body))
            texts = self._input(body.get("input"), empty=empty)
            encoding = choice(body, "encoding_format", ("float", "base64"))
            dimensions = whole(body, "dimensions")
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
                **extra,
            }
            return json_answer(reply, 200, told(made.answered))

    def _input(self, given: Any, *, empty: bool) -> list[str]:
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
        return [self.check_text(item, f"input.{i}", empty=empty) for i, item in enumerate(given)]

    async def _models(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        del exchange, body
        data = [
            {"id": offer.served.name, "object": "model", "created": CREATED, "owned_by": "tailrace"}
            for offer in self.front.catalogue.offers
        ]
        return json_answer({"object": "list", "data": data})
