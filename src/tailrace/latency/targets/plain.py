"""A plain URL: whatever answers, nothing of the answer is understood."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        return Reading(detail={"bytes": sum(len(chunk.data) for chunk in exchange.chunks)})
