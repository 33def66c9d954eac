"""Models elsewhere, behind an OpenAI-compatible API: embeddings, and chat whole or as a stream.

A run of one is one request upstream. Knows the API's shapes; nothing of lanes, doors or our own callers.
"""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from tailrace.core.work import StagedRun
from tailrace.models.errors import BadOutput
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.upstream import Reply, Upstream
from tailrace.models.upstream_errors import UpstreamFailed

AHEAD = 4
"""Pieces of a stream that are read before the caller has taken them; then the upstream must wait."""


def remote_info(name: str, url: str, model: str, kind: str, tokens_max: int) -> ModelInfo:
    """What is known of a model elsewhere: not its weights, so its fingerprint is where and what it is."""
    digest = hashlib.sha256(f"{url.rstrip('/')}\0{model}".encode()).hexdigest()[:16]
    return ModelInfo(
        name=name,
        source=f"{url} {model}",
        kind=kind,
        fingerprint=f"remote-{digest}",
        size_bytes=0,
        quantisation="unknown",
        max_tokens=tokens_max,
        batch_invariant=False,
    )


class RemoteEmbedder:
    """Turns texts into vectors by asking elsewhere; the vectors are as they come, of any length."""

    def __init__(self, upstream: Upstream, model: str) -> None:
        self._upstream = upstream
        self._model = model

    async def embed(self, texts: Sequence[str], run: StagedRun) -> list[FloatArray | Exception]:
        """One vector or exception per text, in order; raises what Upstream.open does."""
        body = orjson.dumps({"model": self._model, "input": list(texts)})
        _, answer = await self._upstream.ask("/embeddings", body, run)
        vectors = _vectors(_object(answer), len(texts))
        run.mark("post")
        return [v if np.isfinite(v).all() else BadOutput() for v in vectors]


@dataclass(slots=True, eq=False)
class Opened:
    """A stream on its way: pieces wait here for who reads them, few at a time."""

    pieces: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(AHEAD))
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with the first piece."""

    async def read(self) -> AsyncIterator[bytes]:
        """The pieces until the stream ends."""
        while (piece := await self.pieces.get()) is not None:
            yield piece


@dataclass(slots=True, eq=False)
class ChatCall:
    """One chat completion asked for; with `opened` its answer comes as a stream."""

    body: dict[str, Any]
    opened: Opened | None = None
    moments: list[tuple[str, float]] = field(default_factory=list)
    """The parts of the run that have ended, each with its end: filled while it runs."""


class RemoteChat:
    """Answers chat completions by asking elsewhere."""

    def __init__(self, upstream: Upstream, model: str) -> None:
        self._upstream = upstream
        self._model = model

    async def complete(self, calls: Sequence[ChatCall], run: StagedRun) -> list[bytes]:
        """One answer per call, in order: the body as it came, empty for a stream, which went its own way.

        Raises what Upstream.open does.
        """
        return [await self._one(call, run) for call in calls]

    async def _one(self, call: ChatCall, run: StagedRun) -> bytes:
        body = orjson.dumps({**call.body, "model": self._model})
        if call.opened is None:
            _, answer = await self._upstream.ask("/chat/completions", body, run)
            if not isinstance(_object(answer).get("choices"), list):
                raise UpstreamFailed("The upstream's answer has no choices.")
            return answer
        async with self._upstream.open("/chat/completions", body, run) as reply:
            await _pass_on(reply, call.opened)
        return b""


async def _pass_on(reply: Reply, opened: Opened) -> None:
    """Hand the pieces over as fast as they are taken."""
    kind = reply.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        raise UpstreamFailed(f"The upstream does not stream; its answer is {kind or 'untyped'}.")
    async for piece in reply.pieces:
        await opened.pieces.put(piece)
        opened.begun.set()
    if not opened.begun.is_set():
        raise UpstreamFailed("The upstream's stream ended before it began.")
    await opened.pieces.put(None)


def _object(answer: bytes) -> dict[str, Any]:
    try:
        made = orjson.loads(answer)
    except orjson.JSONDecodeError:
        made = None
    if not isinstance(made, dict):
        raise UpstreamFailed("The upstream's answer is not a JSON object.")
    return made


def _vectors(answer: dict[str, Any], count: int) -> list[FloatArray]:
    """The vectors in the order of the texts; raises UpstreamFailed where there is not one for each."""
    data = answer.get("data")
    if not isinstance(data, list) or len(data) != count:
        raise UpstreamFailed(f"The upstream did not answer with {count} embeddings.")
    vectors: dict[int, FloatArray] = {}
    try:
        for place, entry in enumerate(data):
            vectors[int(entry.get("index", place))] = _vector(entry["embedding"])
        ordered = [vectors[i] for i in range(count)]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UpstreamFailed("The upstream's embeddings cannot be read.") from None
    if len({len(vector) for vector in ordered}) > 1 or not ordered[0].size:
        raise UpstreamFailed("The upstream's embeddings are not all of one length.")
    return ordered


def _vector(given: Any) -> FloatArray:
    if isinstance(given, str):
        return np.frombuffer(base64.b64decode(given, validate=True), "<f4").astype(np.float32)
    vector = np.asarray(given, np.float32)
    if vector.ndim != 1:
        raise ValueError("an embedding is a list of numbers")
    return vector
