"""Cohere's dialect: /v2/rerank. /v1/rerank, which Jina claims too, is in jina.py.

Errors carry `message`; what cannot be used is a 400, as Cohere answers.
"""

from math import ceil
from typing import Any
from uuid import uuid4

from tailrace.core.errors import TailraceError
from tailrace.serve.dialect import Dialect, safe, shaped, status_of, told
from tailrace.serve.dialects.rerank_body import Ranking, rank
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import whole
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.schemas import RERANK

DOCUMENTS_PER_UNIT = 100
"""How many documents Cohere bills as one search."""


class Cohere(Dialect):
    """Reranking as Cohere offers it, second version."""

    tag = "cohere"

    def add_routes(self) -> None:
        """One entry."""
        self.post("/v2/rerank", self._rerank, RERANK, summary="Rank documents (Cohere v2)")

    def on_error(self, error: TailraceError) -> Answer:
        """{"message"}, with our code beside it."""
        status = status_of(error)
        status = 400 if status in {413, 415, 422} else status
        body = {"id": str(uuid4()), "message": safe(error), "code": error.code}
        return shaped(error, status, body)

    async def _rerank(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        whole(body, "priority", least=0)
        made = await rank(self, exchange, body, documents=False)
        with exchange.part("serialize"):
            reply = {
                "id": str(uuid4()),
                "results": results(made),
                "meta": meta(made, "2"),
            }
            return json_answer(reply, 200, told(made.scored.answered))


def results(made: Ranking) -> list[dict[str, Any]]:
    """The documents asked for, the best first; their text as an object where it is wanted."""
    scores = made.scored.scores(raw=False)
    return [
        {
            "index": i,
            "relevance_score": scores[i],
            **({"document": {"text": made.documents[i]}} if made.with_documents else {}),
        }
        for i in made.order
    ]


def meta(made: Ranking, version: str) -> dict[str, Any]:
    """What it cost in Cohere's words, and a warning if documents lost their end."""
    answered = made.scored.answered
    about: dict[str, Any] = {
        "api_version": {"version": version},
        "billed_units": {"search_units": ceil(len(made.documents) / DOCUMENTS_PER_UNIT)},
        "tokens": {"input_tokens": answered.tokens_total, "output_tokens": 0},
    }
    if cut := sum(answered.truncated):
        about["warnings"] = [f"{cut} of the documents were too long and lost their end."]
    return about
