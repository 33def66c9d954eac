"""A plain URL: whatever answers. Its JSON is read only for times that the server declares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.latency.exchange import Exchange
from tailrace.latency.targets.port import Ask, Reading


@dataclass(frozen=True)
class PlainUrl:
    """One URL asked for again and again with the same body."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def name(self) -> str:
        """The URL."""
        return self.url

    def ask(self, index: int) -> Ask:
        """The same request every time."""
        del index
        return Ask(self.method, self.url, self.headers, self.body)

    def read(self, exchange: Exchange) -> Reading:
        """Any answer will do."""
        size = sum(len(chunk.data) for chunk in exchange.chunks)
        return Reading(detail={"bytes": size}, answer=_json(exchange))


def _json(exchange: Exchange) -> Any:
    """The answer's JSON, or that of its last line; None where it is none."""
    kind = exchange.headers.get("content-type", "")
    if "json" not in kind:
        return None
    body = exchange.body.rstrip()
    if "ndjson" in kind or "jsonl" in kind:
        body = body[body.rfind(b"\n") + 1 :]
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
