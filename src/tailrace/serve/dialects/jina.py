"""/v1/rerank, which Jina, Cohere's first version, vLLM and llama.cpp all claim: a body that serves each.

Their requests cannot be told apart for certain (a Jina request without options is a Cohere request), and
need not be: no client minds fields it does not know. Jina returns documents unless told not to.
"""

from typing import Any
from uuid import uuid4

from tailrace.core.errors import TailraceError
from tailrace.serve.dialect import Dialect, safe, shaped, status_of, told
from tailrace.serve.dialects.cohere import meta, results
from tailrace.serve.dialects.rerank_body import rank
from tailrace.serve.exchange import Exchange
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.schemas import RERANK

ALIASES = ("/v1/rerank", "/v1/reranking", "/reranking")


class Jina(Dialect):
    """The union of all rerank answers."""

    tag = "jina"

    def add_routes(self) -> None:
        """One entry and llama.cpp's other names for it."""
        for path in ALIASES:
            self.post(
                path,
                self._rerank,
                RERANK,
                summary="Rank documents (Jina, Cohere v1, vLLM, llama.cpp)",
            )

    def on_error(self, error: TailraceError) -> Answer:
        """`detail` for Jina's clients, `message` for Cohere's, `error` for the others'."""
        return shaped(error, status_of(error), union_error(error))

    async def _rerank(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        made = await rank(self, exchange, body, documents=True, least=0)
        with exchange.part("serialize"):
            tokens = made.scored.answered.tokens_total
            reply = {
                "id": str(uuid4()),
                "object": "list",
                "model": made.model.served.name,
                "usage": {"total_tokens": tokens, "prompt_tokens": tokens},
                "results": results(made),
                "meta": meta(made, "1"),
            }
            return json_answer(reply, 200, told(made.scored.answered))


def union_error(error: TailraceError) -> dict[str, Any]:
    """One body in which every client finds its message."""
    said = safe(error)
    inner = {"message": said, "type": error.code, "param": None, "code": status_of(error)}
    return {"message": said, "detail": said, "error": inner}
