"""An embedding model elsewhere on offer: texts in, vectors out, through a lane of its own.

Its tokenizer is not known here: costs and `usage` are estimates by characters.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.core.errors import InputError
from tailrace.core.lane import Runner
from tailrace.core.work import StagedRun
from tailrace.models.remote import RemoteEmbedder
from tailrace.serve.embedding import Embedded, ServedEmbedder, unit
from tailrace.serve.exchange import Journey
from tailrace.serve.served import POOLED, ServedModel, Terms, WrongKind

CHARS_PER_TOKEN = 4
"""What a token is taken for where nobody can count them."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text for a model elsewhere."""

    text: str
    kind: str = POOLED
    truncated: bool = False

    @property
    def payload(self) -> str:
        """The text as it is."""
        return self.text

    @property
    def cost(self) -> float:
        """An estimate of its tokens."""
        return float(1 + len(self.text) // CHARS_PER_TOKEN)

    @property
    def key(self) -> Hashable:
        """The text itself."""
        return self.text


class ServedRemoteEmbedder(ServedEmbedder):
    """Embeds elsewhere, through the lane."""

    def __init__(self, served: ServedModel) -> None:  # it has no model of its own to keep
        self.served = served
        self.default_prompt = None

    @property
    def model(self) -> Any:  # type: ignore[override]
        """There is none here; raises WrongKind."""
        raise WrongKind(f"{self.served.name!r} runs elsewhere; its tokenizer is not known here.")

    @property
    def prompts(self) -> Sequence[str]:
        """None: what stands before a text is the caller's affair."""
        return ()

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
        if prompt is not None:
            raise InputError(f"{self.served.name!r} runs elsewhere and knows no prompts.")
        if left:
            raise InputError(
                f"{self.served.name!r} runs elsewhere; nothing is cut here, on either side."
            )
        answered = await self.served.answer(exchange, [Text(text) for text in texts], terms)
        vectors = unit(self.served.name, answered.values, dimensions, normalize=normalize)
        return Embedded(vectors, answered)


def embedding_runner(model: RemoteEmbedder) -> Runner:
    """The lane's callable: a batch of texts is one request upstream."""

    async def run(batch: Sequence[str], run: StagedRun) -> Sequence[Any]:
        return await model.embed(batch, run)

    return run
