"""An embedding model as the book service asks it, through its lanes: queries in time, documents behind them.

Without a lane it is what fills and judges a space.
"""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np

from tailrace.core.clock import Clock
from tailrace.core.work import Stamps
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.gates import Quiet
from tailrace.search.spaces import CANARY_TEXT, space_of
from tailrace.serve.background import BackgroundEmbedder
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.exchange import Journey
from tailrace.serve.served import Terms
from tailrace.stores.port import Canary, FloatArray, Space, Vectors

QUERY, PASSAGE = "query", "passage"
_NAMES = {"tokenize": "tokenize", "infer": "embed", "post": "embed"}


class ModelEmbedder:
    """Texts of one model as vectors of its space, asked directly."""

    def __init__(self, model: OnnxEmbedder) -> None:
        self._model = model
        self.canary = Canary(CANARY_TEXT, model.vector(CANARY_TEXT, prompt=self._prompt(PASSAGE)))
        self.space: Space = space_of(model.info, model.prompts, dimension=len(self.canary.vector))

    def _prompt(self, name: str) -> str | None:
        return name if name in self._model.prompts else None

    async def query(self, text: str, deadline: float) -> tuple[Vectors, Mapping[str, float]]:
        """See search.hybrid.QueryEmbedder; it takes as long as the model does."""
        del deadline
        row = await asyncio.to_thread(self._model.vector, text, prompt=self._prompt(QUERY))
        return Vectors(self.space, row[None, :]), {}

    def documents_now(self, passages: Sequence[str]) -> FloatArray:
        """Vectors of documents, on all inference threads at once."""
        made = self._model.embed(passages, Quiet(), prompt=self._prompt(PASSAGE))
        for answer in made:
            if isinstance(answer, Exception):
                raise answer
        return np.asarray(made, np.float32)


class LaneEmbedder(ModelEmbedder):
    """The same through the lanes."""

    def __init__(
        self, served: ServedEmbedder, background: BackgroundEmbedder, clock: Clock
    ) -> None:
        super().__init__(served.model)
        self._served = served
        self._background = background
        self._clock = clock

    async def query(self, text: str, deadline: float) -> tuple[Vectors, Mapping[str, float]]:
        """See search.hybrid.QueryEmbedder."""
        journey = Journey(self._clock)
        made = await self._served.embed(
            journey, [text], Terms(deadline=deadline), prompt=self._prompt(QUERY)
        )
        trail = Stamps(0.0)
        for part, seconds in journey.stamps.parts().items():
            trail.close(_NAMES.get(part, "embed-wait"), trail.last + seconds)
        return Vectors(self.space, np.asarray(made.vectors, np.float32)), trail.parts()

    async def documents(self, passages: Sequence[str]) -> FloatArray:
        """Vectors of documents, behind every query."""
        return await self._background.embed(passages, prompt=self._prompt(PASSAGE))
