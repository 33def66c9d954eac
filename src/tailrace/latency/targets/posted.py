"""Targets that take JSON and give JSON: embeddings, rerank, a door of a review box.

One class for the sending and the reading; each kind says its body and what its answer must hold.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.latency.exchange import Exchange
from tailrace.latency.targets.port import Ask, Reading

Understand = Callable[[Any, int], Mapping[str, Any]]
"""The details of an answer to so many inputs; raises BadAnswer."""

SENT_AS_JSON = {"content-type": "application/json", "accept": "application/json"}


class BadAnswer(ValueError):
    """The answer is JSON, but not what was asked for: what is wrong, in one sentence."""


@dataclass(frozen=True)
class Posted:
    """One URL, a body made from some of the texts, and what its answer must hold."""

    kind: str
    url: str
    texts: Sequence[str]
    """Asked in turn, `batch` at a time; what does not divide evenly wraps round."""
    body_of: Callable[[Sequence[str]], Mapping[str, Any]]
    understand: Understand
    batch: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Kind and URL."""
        return f"{self.kind} {self.url}"

    def ask(self, index: int) -> Ask:
        """The texts number index * batch on."""
        count = len(self.texts)
        chosen = [self.texts[(index * self.batch + i) % count] for i in range(self.batch)]
        body = orjson.dumps(self.body_of(chosen))
        return Ask(
            "POST",
            self.url,
            {**SENT_AS_JSON, **self.headers},
            body,
            prompt=digest(body),
            detail={"kind": self.kind, "batch_size": self.batch},
        )

    def read(self, exchange: Exchange) -> Reading:
        """Parse the answer and look whether it holds what was asked for."""
        try:
            answer = orjson.loads(exchange.body)
        except orjson.JSONDecodeError:
            return Reading(problem="the answer is not JSON")
        try:
            return Reading(answer=answer, detail=self.understand(answer, self.batch))
        except BadAnswer as error:
            return Reading(problem=str(error), answer=answer)


def digest(body: bytes) -> str:
    """What pairs requests of the same content between runs."""
    return hashlib.sha256(body).hexdigest()[:16]


def usage_tokens(answer: Mapping[str, Any]) -> dict[str, int]:
    """Token counts as most APIs name them."""
    usage = answer.get("usage")
    if not isinstance(usage, Mapping):
        return {}
    count = usage.get("prompt_tokens", usage.get("total_tokens"))
    return {"input_tokens": count} if isinstance(count, int) else {}
