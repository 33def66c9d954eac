"""An embedding model elsewhere, to compare with: its vectors, in memory, and the ranking they give.

Its vectors meet no others and nothing is written. Knows no store and no terminal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.core.errors import ModelError
from tailrace.models.gates import Quiet
from tailrace.models.port import Progress
from tailrace.models.remote import RemoteEmbedder, remote_info
from tailrace.models.upstream import Upstream
from tailrace.models.upstream_errors import (
    UpstreamBusy,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamTimeout,
)
from tailrace.search.passages import passage
from tailrace.search.spaces import space_of
from tailrace.serve.embedding import unit
from tailrace.stores.batches import mismatch
from tailrace.stores.feed import ranked
from tailrace.stores.port import Document, FloatArray, Vectors

BATCH_TEXTS = 32
"""Texts in one request."""
TRIES_MAX = 6
"""How often one request is made."""
BACKOFF_S = 1.0
"""The pause after a failure, doubled each time; after a refusal it is as long as the upstream says."""
PAUSE_S_MAX = 120.0
"""An upstream that asks for a longer pause ends the comparison."""


@dataclass(frozen=True, slots=True)
class Remote:
    """Which model, where, and what stands before texts; the key is named, never held."""

    url: str
    """The base of its API, such as `https://llm.example/v1`."""
    model: str
    key_env: str | None = None
    query_prefix: str = ""
    document_prefix: str = ""


class RemoteBaseline:
    """Asks one model for everything. Used on one event loop; `aclose` it there."""

    def __init__(
        self, remote: Remote, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._remote = remote
        self._upstream = Upstream(remote.url, key_env=remote.key_env)
        self._embedder = RemoteEmbedder(self._upstream, remote.model)
        self._sleep = sleep

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._upstream.close()

    async def queries(self, texts: Sequence[str], tell: Progress) -> Vectors:
        """Vectors of queries; raises UpstreamFailed and what else of it cannot be mended by asking again."""
        return await self._vectors(texts, self._remote.query_prefix, "queries", tell)

    async def documents(self, documents: Sequence[Document], tell: Progress) -> Vectors:
        """Vectors of documents, of the same text that our own model reads; raises as `queries`."""
        texts = [passage(document) for document in documents]
        return await self._vectors(texts, self._remote.document_prefix, "documents", tell)

    async def _vectors(
        self, texts: Sequence[str], prefix: str, what: str, tell: Progress
    ) -> Vectors:
        rows: list[FloatArray] = []
        for first in range(0, len(texts), BATCH_TEXTS):
            batch = [prefix + text for text in texts[first : first + BATCH_TEXTS]]
            rows += await self._batch(batch)
            if len({len(row) for row in rows}) > 1:
                raise UpstreamFailed("The upstream's embeddings are not all of one length.")
            tell(f"{what} to {self._remote.model}"[:32], len(rows) / len(texts))
        made = np.stack(unit(self._remote.model, rows, None, normalize=True))
        info = remote_info(self._remote.model, self._remote.url, self._remote.model, "embedding", 0)
        prompts = {"query": self._remote.query_prefix, "passage": self._remote.document_prefix}
        return Vectors(space_of(info, prompts, dimension=made.shape[1], pooling="unknown"), made)

    async def _batch(self, texts: Sequence[str]) -> list[FloatArray]:
        for tries in range(1, TRIES_MAX + 1):
            try:
                made = await self._embedder.embed(texts, Quiet())
            except UpstreamDenied:
                raise
            except (UpstreamBusy, UpstreamFailed, UpstreamTimeout) as error:
                pause_s = _pause_s(error, tries)
                if tries == TRIES_MAX or pause_s > PAUSE_S_MAX:
                    raise
                await self._sleep(pause_s)
                continue
            return [_sound(vector) for vector in made]
        raise AssertionError


def _pause_s(error: ModelError, tries: int) -> float:
    if isinstance(error, UpstreamBusy):
        return error.pause_s
    return min(BACKOFF_S * 2.0 ** (tries - 1), PAUSE_S_MAX)


def _sound(vector: FloatArray | Exception) -> FloatArray:
    if isinstance(vector, Exception):
        raise vector
    return vector


def rankings(
    queries: Vectors, documents: Vectors, ids: Sequence[str], depth: int
) -> list[list[str]]:
    """The ids of the nearest documents for each query, best first, equal ones by id.

    Raises SpaceMismatch where the two are of different spaces; nothing is compared then.
    """
    if queries.space != documents.space:
        raise mismatch(queries.space, documents.space)
    scores = np.asarray(queries.rows @ documents.rows.T, np.float64)
    return [
        [hit.id for hit in ranked(list(zip(ids, row.tolist(), strict=True)), depth)]
        for row in scores
    ]
