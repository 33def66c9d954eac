"""An embedding model on offer: texts in, vectors out, with a word about what was cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tailrace.core.errors import InputError
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import BadOutput
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.serve.exchange import Journey
from tailrace.serve.served import (
    INLINE_CHARS,
    PIECEWISE,
    POOLED,
    Answered,
    Item,
    NotOffered,
    ServedModel,
    Terms,
)


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector per text, in order."""

    vectors: list[FloatArray]
    """Each [dimensions], float32."""
    answered: Answered


class ServedEmbedder:
    """Embeds through the lane."""

    def __init__(
        self,
        served: ServedModel,
        model: OnnxEmbedder,
        threads: InferenceThreads,
        *,
        default_prompt: str | None = None,
    ) -> None:
        self.served = served
        self.model = model
        self.default_prompt = default_prompt
        self.threads = threads

    @property
    def prompts(self) -> Sequence[str]:
        """The names of the prompts the model was trained with."""
        return tuple(self.model.prompts)

    async def embed(
        self,
        exchange: Journey,
        texts: Sequence[str],
        terms: Terms,
        *,
        prompt: str | None = None,
        normalize: bool = True,
        dimensions: int | None = None,
        left: bool = False,
    ) -> Embedded:
        """Vectors of `texts`, with the model's `prompt` before each, or the default one.

        `dimensions` keeps the first so many numbers; vectors are brought to unit length unless
        `normalize` is off. A text that is too long loses its end, with `left` its beginning.

        Raises:
            InputError: a prompt or a number of dimensions that the model does not know.
            TailraceError: as ServedModel.answer.

        """
        items = await self._items(exchange, texts, terms, prompt, left=left)
        answered = await self.served.answer(exchange, items, terms)
        vectors = unit(self.served.name, answered.values, dimensions, normalize=normalize)
        return Embedded(vectors, answered)

    async def embed_tokens(
        self,
        exchange: Journey,
        texts: Sequence[str],
        terms: Terms,
        *,
        prompt: str | None = None,
        left: bool = False,
    ) -> Answered:
        """For every text a vector for each of its tokens, as the model gives them.

        Raises:
            NotOffered: the model's graph has none.
            TailraceError: as ServedModel.answer.

        """
        if not self.model.knows_tokens:
            raise NotOffered(
                f"The graph of {self.served.name} has no output last_hidden_state, so there are no "
                "vectors by token; export the model with it."
            )
        items = await self._items(exchange, texts, terms, prompt, left=left, kind=PIECEWISE)
        return await self.served.answer(exchange, items, terms)

    async def _items(
        self,
        exchange: Journey,
        texts: Sequence[str],
        terms: Terms,
        prompt: str | None,
        *,
        left: bool,
        kind: str = POOLED,
    ) -> list[Item]:
        prompt = self.default_prompt if prompt is None else prompt
        characters = sum(map(len, texts))
        self.served.foresee(exchange, texts, characters, terms)

        def tokenize() -> list[Item]:
            return [Item(self.model.tokens(text, prompt=prompt, left=left), kind) for text in texts]

        with exchange.part("tokenize"):
            if characters <= INLINE_CHARS:
                items = tokenize()
            else:
                items = await exchange.unless_left(self.threads.call(tokenize))
            self.served.foresight.read(texts, characters, sum(item.cost for item in items))
        return items


def unit(
    name: str, values: Sequence[FloatArray], dimensions: int | None, *, normalize: bool
) -> list[FloatArray]:
    """Vectors as they are answered: cut to `dimensions`, of unit length unless `normalize` is off.

    One by one: for the usual handful that is a fraction of what the same costs as a matrix.
    """
    full = len(values[0])
    if dimensions is not None and not 1 <= dimensions <= full:
        raise InputError(f"`dimensions` must be 1 to {full} for {name}.")
    made = []
    for value in values:
        if len(value) != full:
            raise BadOutput("The model gave vectors of different lengths.")
        vector = value[:dimensions]
        length = sqrt(vector.dot(vector))
        if not length:
            raise BadOutput("The model gave a zero vector, which has no direction.")
        made.append(vector / np.float32(length) if normalize else vector)
    return made
