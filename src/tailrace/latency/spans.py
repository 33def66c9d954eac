"""A measured request as a span, with one for every part of its row: the same names as in reports.

Parts whose place within the wait nobody knows (net, queue, infer as a server declares them) are laid end to
end; what was measured lies where it was measured. Knows nothing of the library that sends them.
"""

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from tailrace.latency.exchange import now_ns
from tailrace.latency.targets.port import Ask
from tailrace.wire.record import Row
from tailrace.wire.tracing import (
    ERROR_TYPE,
    FINISH_REASONS,
    HTTP_METHOD,
    HTTP_STATUS,
    INPUT_TOKENS,
    OPERATION,
    OUTCOME,
    OUTPUT_TOKENS,
    PHASE,
    REASONING_TOKENS,
    REQUEST_MODEL,
    REQUEST_STREAM,
    SERVER_ADDRESS,
    SERVER_PORT,
    SOURCE,
    URL_PATH,
    Finished,
    Piece,
    Value,
)

OPERATIONS = {"openai-chat": "chat", "openai-embeddings": "embeddings"}
"""Kinds of targets that the semantic conventions have a name for; the others keep their own."""
TOLD = {
    "model": REQUEST_MODEL,
    "streamed": REQUEST_STREAM,
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "reasoning_tokens": REASONING_TOKENS,
}
"""Details of a row that have a name there."""


def finished(row: Row, ask: Ask, intended_ns: int) -> Finished:
    """The row as it goes to a collector; `intended_ns` is its intended start by the clock of stamps."""
    where = urlsplit(ask.url)
    about: dict[str, Value] = {
        HTTP_METHOD: ask.method,
        URL_PATH: where.path or "/",
        SERVER_ADDRESS: where.hostname or "",
        SERVER_PORT: where.port or (443 if where.scheme == "https" else 80),
        OUTCOME: row.outcome,
        PHASE: row.phase,
        **_details(row.detail),
    }
    if row.status is not None:
        about[HTTP_STATUS] = row.status
    if row.outcome != "ok":
        about[ERROR_TYPE] = str(row.detail.get("failure") or row.status or row.outcome)
    return Finished(
        f"{ask.method} {where.path or '/'}",
        time.time_ns() - (now_ns() - intended_ns),
        [Piece(name, part.ms / 1000, {SOURCE: part.source}) for name, part in row.parts.items()],
        about,
        failed=row.outcome != "ok",
        side="client",
        seconds=row.wall_ms / 1000,
    )


def _details(detail: Mapping[str, object]) -> dict[str, Value]:
    told: dict[str, Value] = {}
    for key, name in TOLD.items():
        if isinstance(value := detail.get(key), str | bool | int):
            told[name] = value
    if isinstance(kind := detail.get("kind"), str):
        told[OPERATION] = OPERATIONS.get(kind, kind)
    if isinstance(reason := detail.get("finish_reason"), str):
        told[FINISH_REASONS] = [reason]
    return told
