"""What the house asks of a runtime: the port, and what its adapters do alike.

Knows no runtime, no texts, no labels and no threads.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Session(Protocol):
    """The weights of one model, ready to run; one per model, and safe to call from several threads."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of what the graph gives."""

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        """One run over inputs padded to the longest of them; raises what the runtime raises."""

    def close(self) -> None:
        """Let go of the weights, and of processes where there are any."""


def check_inputs(path: Path, names: Iterable[str]) -> None:
    """Refuse a graph that wants what we cannot give."""
    if unknown := set(names) - set(KNOWN_INPUTS):
        raise ModelUnavailable(
            f"{path} wants inputs we do not know: {', '.join(sorted(unknown))}; "
            f"export the model with {', '.join(sorted(KNOWN_INPUTS))}"
        )


def pad(batch: Sequence[Tokens]) -> dict[str, Any]:
    """The three input arrays of a batch; padding is id 1 where the mask says so."""
    longest = max(len(tokens.ids) for tokens in batch)
    ids = np.ones((len(batch), longest), np.int64)
    mask = np.zeros((len(batch), longest), np.int64)
    types = np.zeros((len(batch), longest), np.int64)
    for row, tokens in enumerate(batch):
        count = len(tokens.ids)
        ids[row, :count] = tokens.ids
        mask[row, :count] = 1
        types[row, :count] = tokens.types
    return dict(zip(KNOWN_INPUTS, (ids, mask, types), strict=True))
