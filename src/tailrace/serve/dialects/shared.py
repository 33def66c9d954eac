"""The paths that two dialects claim: /embeddings, /rerank, /models, /health, / and /ping.

A body that only one of them can have sent is theirs; else the answer is one that both can read. See
docs/decisions/0013.
"""

from typing import Any

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.dialect import Dialect, Front, shaped
from tailrace.serve.dialects.infinity import Infinity, about, born
from tailrace.serve.dialects.openai import OpenAI, openai_error
from tailrace.serve.dialects.tei import Tei
from tailrace.serve.exchange import Exchange
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.schemas import ANY_RERANK, INFINITY_EMBEDDINGS


class Shared(Dialect):
    """Finds out whose request it is, and hands it over."""

    tag = "shared"

    def __init__(self, front: Front) -> None:
        self._openai, self._tei, self._infinity = OpenAI(front), Tei(front), Infinity(front)
        super().__init__(front)

    def add_routes(self) -> None:
        """Every claimed path."""
        self.post(
            "/embeddings",
            self._embeddings,
            INFINITY_EMBEDDINGS,
            summary="Embed texts (OpenAI, Infinity)",
        )
        self.post(
            "/rerank",
            self._rerank,
            ANY_RERANK,
            summary="Rank `texts` (TEI) or `documents` (Infinity)",
        )
        self.get("/models", self._models, summary="The models on offer, with their lines")
        for path in ("/health", "/ping", "/"):
            self.get(
                path, self._tei.health, public=True, summary="200 while work is taken in, else 503"
            )

    def on_error(self, error: TailraceError) -> Answer:
        """Before the body is known, nobody's alone: Infinity's body, whose `error` OpenAI's clients read."""
        return self._infinity.on_error(error)

    async def _embeddings(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        infinity = "modality" in body or body.get("dimensions") == 0
        try:
            modality = body.get("modality")
            if modality is not None and modality != "text":
                raise InputError("`modality` must be text.")
            if body.get("dimensions") == 0:
                body = {**body, "dimensions": None}  # Infinity's way to say: all of them
            return await self._openai.embed(exchange, body, born(), empty=infinity)
        except TailraceError as error:
            if infinity:
                return self._infinity.on_error(error)
            status, inner = openai_error(error)
            return shaped(error, status, {"error": inner, "detail": inner["message"]})

    async def _rerank(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        if "documents" in body or "texts" not in body:
            return await self._infinity.rerank(exchange, body)
        try:
            return await self._tei.rerank(exchange, body)
        except TailraceError as error:
            return self._tei.on_error(error)

    async def _models(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        del exchange, body
        return json_answer(
            {"object": "list", "data": [about(offer) for offer in self.front.catalogue.offers]}
        )
