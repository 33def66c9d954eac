"""What the connection and the head of an answer tell besides times: kept in a row's detail, by name."""

from typing import Any

from tailrace.latency.exchange import Exchange
from tailrace.latency.floor import edge
from tailrace.latency.partition import NS
from tailrace.wire.headers import RETRY_AFTER, RETRY_AFTER_MS, X_BATCH_SIZE, X_CACHE, X_FALLBACK

WORDS = {
    X_CACHE: "cache",
    X_FALLBACK: "fallback",
    "x-ms-region": "region",
    "x-region": "region",
    "x-inference-provider": "provider",
}
"""Headers kept as they are."""
NUMBERS = {
    X_BATCH_SIZE: "server_batch",
    RETRY_AFTER: "retry_after_s",
    RETRY_AFTER_MS: "retry_after_ms",
    "x-compute-tokens": "input_tokens",
    "x-prompt-tokens": "input_tokens",
    "fireworks-prompt-tokens": "input_tokens",
    "fireworks-cached-prompt-tokens": "cached_tokens",
    "fireworks-num-concurrent-requests": "server_in_flight",
}
"""Headers kept as numbers."""
WORD_CHARS = 80


def facts(exchange: Exchange) -> dict[str, Any]:
    """Everything that is known, by the names of a row's detail."""
    known: dict[str, Any] = {}
    connection = exchange.connection
    if connection is not None:
        known |= {"reused": connection.reused, "peer": connection.peer}
        if connection.tls_version is not None:
            known["tls_version"] = connection.tls_version
        if connection.min_rtt_ns is not None:
            known["min_rtt_ms"] = connection.min_rtt_ns * NS
        if connection.retransmits:
            known["retransmits"] = connection.retransmits
    if exchange.sent_bytes:
        known["sent_bytes"] = exchange.sent_bytes
    if exchange.retried:
        known["retried"] = True
    if (header := edge(exchange.headers)) is not None:
        known["edge"] = header
    for header, name in WORDS.items():
        if header.lower() in exchange.headers:
            known[name] = exchange.headers[header.lower()][:WORD_CHARS]
    for header, name in NUMBERS.items():
        number = _number(exchange.headers.get(header.lower()))
        if number is not None:
            known[name] = number
    return known


def _number(text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number
