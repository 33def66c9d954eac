"""Another embedding model in the place of one that failed, by rule, and said so.

Vectors of different models do not compare, so this is only made where both are of one space; the app
sees to that at start.
"""

from collections.abc import Sequence
from dataclasses import replace

from tailrace.core.errors import TailraceError
from tailrace.serve.embedding import Embedded, ServedEmbedder
from tailrace.serve.exchange import Journey
from tailrace.serve.served import Terms


class FallbackEmbedder(ServedEmbedder):
    """`first`, or `second` where the error's code is one of `codes`."""

    def __init__(
        self, first: ServedEmbedder, second: ServedEmbedder, codes: frozenset[str]
    ) -> None:
        self.served = first.served
        self._first = first
        self._second = second
        self._codes = codes

    def __getattr__(self, name: str) -> object:
        """All else is the first one's."""
        return getattr(self._first, name)

    @property
    def prompts(self) -> Sequence[str]:
        """The first one's prompts."""
        return self._first.prompts

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
        """Vectors of `texts`; see ServedEmbedder.embed."""
        try:
            return await self._first.embed(
                exchange,
                texts,
                terms,
                prompt=prompt,
                normalize=normalize,
                dimensions=dimensions,
                left=left,
            )
        except TailraceError as error:
            # Without its prompt a text is another text: then the first one's error stands.
            asked = self._first.default_prompt if prompt is None else prompt
            theirs = self._second.default_prompt
            strange = theirs is not None if asked is None else asked not in self._second.prompts
            if error.code not in self._codes or strange:
                raise
        made = await self._second.embed(
            exchange,
            texts,
            terms,
            prompt=asked,
            normalize=normalize,
            dimensions=dimensions,
            left=left,
        )
        return replace(made, answered=replace(made.answered, fallback=self._second.served.name))
