"""What the house asks of a model: protocols and data only.

Knows nothing of lanes, doors or HTTP; a model may be asked from any one thread at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tailrace.core.work import Run

FloatArray = npt.NDArray[np.float32]
Progress = Callable[[str, float], None]
"""Called with what is being done and the share done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model is; `fingerprint` changes whenever its answers could."""

    name: str
    source: str
    kind: str
    """cross-encoder or embedding."""
    fingerprint: str
    size_bytes: int
    quantisation: str
    max_tokens: int
    batch_invariant: bool
    """Whether an item's answer is the same alone and beside neighbours; measured at start."""
    detail: dict[str, Any] = field(default_factory=dict)


class CrossEncoder(Protocol):
    """Reads a text against labels and says how much each applies."""

    @property
    def info(self) -> ModelInfo:
        """What this model is."""

    def score(
        self, texts: Sequence[str], labels: Sequence[str], run: Run
    ) -> list[FloatArray | Exception]:
        """Calibrated probabilities, one array of len(labels) per text, in order.

        An item that cannot be scored (or that nobody wants any more) is an exception in its place;
        the others are answered. Marks `tokenize`, `infer` and `post` on the run.
        """

    def cost(self, text: str, labels: Sequence[str]) -> float:
        """Tokens the model will read for this text, padding not counted."""

    def close(self) -> None:
        """Stop the threads and let go of the weights."""


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def info(self) -> ModelInfo:
        """What this model is."""

    def embed(
        self, texts: Sequence[str], run: Run, *, prompt: str | None = None
    ) -> list[FloatArray | Exception]:
        """One unit vector per text, in order; exceptions and marks as in CrossEncoder.score.

        `prompt` names one of the prompts the model was trained with (`info.detail["prompts"]`);
        another name raises UnknownPrompt, None puts nothing before the text.
        """

    def cost(self, text: str, *, prompt: str | None = None) -> float:
        """Tokens the model will read for this text."""

    def close(self) -> None:
        """Stop the threads and let go of the weights."""
