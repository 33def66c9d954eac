"""Infinity's dialect: /classify here, /embeddings, /rerank, /models and /health by way of shared.py.

Answers carry `id` and `created`; a document comes back as the bare string. What cannot be used is a 422
with `detail` as FastAPI words it, and `error` beside it.
"""

import time
from typing import Any
from uuid import uuid4

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.catalogue import Offer
from tailrace.serve.classifying import ServedClassifier
from tailrace.serve.dialect import Dialect, safe, shaped, status_of, told
from tailrace.serve.dialects.openai import CREATED
from tailrace.serve.dialects.rerank_body import rank
from tailrace.serve.dialects.tei_shapes import by_label
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import flag, model_named
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.schemas import INFINITY_CLASSIFY


class Infinity(Dialect):
    """What an Infinity server answers."""

    tag = "infinity"

    def add_routes(self) -> None:
        """The one path that nobody else claims."""
        self.post(
            "/classify",
            self._classify,
            INFINITY_CLASSIFY,
            summary="Score texts against a model's labels",
        )

    def on_error(self, error: TailraceError) -> Answer:
        """{"error": {message, type, param, code}}, and `detail`: a list for input, else a string."""
        status = status_of(error)
        said = safe(error)
        detail: Any = "Unauthorized" if error.code == "unauthorized" else said
        if isinstance(error, InputError):
            detail = [{"type": error.code, "loc": ["body"], "msg": said, "input": None}]
        inner = {"message": said, "type": error.code, "param": None, "code": status}
        return shaped(error, status, {"error": inner, "detail": detail})

    async def rerank(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        """Documents by how well they fit the query, the best first."""
        raw = flag(body, "raw_scores", default=False)
        made = await rank(self, exchange, body, documents=False)
        with exchange.part("serialize"):
            scores = made.scored.scores(raw=raw)
            results = [
                {
                    "index": i,
                    "relevance_score": scores[i],
                    **({"document": made.documents[i]} if made.with_documents else {}),
                }
                for i in made.order
            ]
            tokens = made.scored.answered.tokens_total
            reply = {
                "object": "rerank",
                "results": results,
                "model": made.model.served.name,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
                **born(),
            }
            return json_answer(reply, 200, told(made.scored.answered))

    async def _classify(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.classifier(model_named(body))
            given = body.get("input")
            given = [given] if isinstance(given, str) else given
            if not isinstance(given, list):
                raise InputError("`input` must be a list of strings.")
            self.check_count(given, "input")
            texts = [self.check_text(t, f"input.{i}", empty=True) for i, t in enumerate(given)]
            raw = flag(body, "raw_scores", default=False)
            items = len(texts) * model.inputs_per_text
            self.check_number(items, "input")
            terms = self.terms(exchange, items)
        made = await model.classify(exchange, texts, terms)
        with exchange.part("serialize"):
            tokens = made.answered.tokens_total
            reply = {
                "object": "classify",
                "data": by_label(made, model.labels, raw=raw),
                "model": model.served.name,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
                **born(),
            }
            return json_answer(reply, 200, told(made.answered))


def born() -> dict[str, Any]:
    """An answer's id and date."""
    return {"id": f"infinity-{uuid4()}", "created": int(time.time())}


def about(offer: Offer) -> dict[str, Any]:
    """A model as /models lists it: OpenAI's fields and Infinity's."""
    lane = offer.served.lane
    if isinstance(offer, ServedReranker):
        can = ["rerank", "classify"] if offer.labels else ["rerank"]
    elif isinstance(offer, ServedClassifier):
        can = ["classify"]
    else:
        can = ["embed"] if isinstance(offer, ServedEmbedder) else ["chat"]
    return {
        "id": offer.served.name,
        "object": "model",
        "created": CREATED,
        "owned_by": "infinity",  # the one value that Infinity's client takes
        "backend": "remote" if offer.served.info.source.startswith("http") else "onnxruntime",
        "capabilities": can,
        "stats": {
            "queue_fraction": lane.waiting / lane.waiting_max,
            "queue_absolute": lane.waiting,
            "results_pending": lane.waiting + lane.running,
            "batch_size": lane.batch.items_max,
        },
    }
