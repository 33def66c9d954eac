"""The embedding lane as the book service asks it: a query in time, documents in bulk."""

from collections.abc import Mapping, Sequence

import numpy as np

from tailrace.core.clock import Clock
from tailrace.core.work import Stamps
from tailrace.models.gates import Quiet
from tailrace.search.spaces import CANARY_TEXT, space_of
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.exchange import Journey
from tailrace.serve.served import Terms
from tailrace.stores.port import Canary, FloatArray, Space, Vectors

QUERY, PASSAGE = "query", "passage"
_NAMES = {"tokenize": "tokenize", "infer": "embed", "post": "embed"}


class LaneEmbedder:
    """Texts of one model as vectors of its space."""

    def __init__(self, served: ServedEmbedder, clock: Clock) -> None:
        self._served = served
        self._clock = clock
        self.canary = Canary(
            CANARY_TEXT, served.model.vector(CANARY_TEXT, prompt=self._prompt(PASSAGE))
        )
        self.space: Space = space_of(
            served.model.info, served.model.prompts, dimension=len(self.canary.vector)
        )

    def _prompt(self, name: str) -> str | None:
        return name if name in self._served.model.prompts else None

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
        """Vectors of documents, behind every query that waits."""
        journey = Journey(self._clock)
        made = await self._served.embed(
            journey, passages, Terms(bulk=True), prompt=self._prompt(PASSAGE)
        )
        return np.asarray(made.vectors, np.float32)

    def documents_now(self, passages: Sequence[str]) -> FloatArray:
        """The same on all inference threads at once, where no lane runs yet."""
        made = self._served.model.embed(passages, Quiet(), prompt=self._prompt(PASSAGE))
        for answer in made:
            if isinstance(answer, Exception):
                raise answer
        return np.asarray(made, np.float32)
