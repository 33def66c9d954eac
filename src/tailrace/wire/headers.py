"""Header names and their codecs: the vocabulary that both sides of the wire share.

Knows nothing of who sends or reads them.
"""

from collections.abc import Mapping
from math import ceil

SERVER_TIMING = "Server-Timing"
RETRY_AFTER = "Retry-After"
RETRY_AFTER_MS = "retry-after-ms"
X_CACHE = "X-Cache"
X_BATCH_SIZE = "X-Batch-Size"
X_FALLBACK = "X-Fallback"
X_DEADLINE_MS = "X-Deadline-Ms"
X_API_KEY = "X-API-Key"
X_REQUEST_ID = "X-Request-Id"

TOTAL = "total"

PARTS = (
    "parse",
    "cache",
    "admit",
    "wait",
    "batch",
    "tokenize",
    "infer",
    "dns",
    "connect",
    "tls",
    "send",
    "first-byte",
    "transfer",
    "embed-wait",
    "embed",
    "keyword",
    "vector",
    "fuse",
    "rerank",
    "fetch",
    "upsert",
    "decode",
    "detect",
    "recognise",
    "match",
    "spec",
    "search",
    "input",
    "generation",
    "post",
    "handover",
    "serialize",
)
"""The parts of an answer in the order in which they happen; an answer names those that did happen.

Answers that no lane gives (a page, a 404) have the one part `handle`.
"""


def server_timing(parts: Mapping[str, float]) -> str:
    """Parts in seconds as a Server-Timing value in milliseconds, `total` last.

    Each part is rounded to a microsecond, so that parts and total agree to within 0.0005 ms x parts.
    """
    total = sum(parts.values())
    entries = [f"{name};dur={seconds * 1000:.3f}" for name, seconds in parts.items()]
    return ", ".join([*entries, f"{TOTAL};dur={total * 1000:.3f}"])


def parse_server_timing(value: str) -> dict[str, float]:
    """A Server-Timing value as milliseconds by name; entries without a duration are left out."""
    timing: dict[str, float] = {}
    for entry in value.split(","):
        name, *parameters = (piece.strip() for piece in entry.split(";"))
        for parameter in parameters:
            key, _, number = parameter.partition("=")
            if key.strip().lower() == "dur":
                try:
                    timing[name] = float(number.strip().strip('"'))
                except ValueError:
                    continue
    return timing


def retry_after(seconds: float, milliseconds: float | None = None) -> dict[str, str]:
    """Both headers that say when to come back: whole seconds, at least 1, and exact milliseconds."""
    exact = seconds * 1000 if milliseconds is None else milliseconds
    return {
        RETRY_AFTER: str(max(1, ceil(seconds - 1e-9))),
        RETRY_AFTER_MS: str(max(1, ceil(exact - 1e-6))),
    }
