"""`tailrace`, with a hook for the benchmark: a run that holds the text in POISON fails.

The other peers fail in the same place, inside the model. Without POISON this is `tailrace` unchanged.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from tailrace.cli.main import app
from tailrace.models.embedder import OnnxEmbedder


def poison(text: str) -> None:
    """Make every run that holds `text` fail."""
    vectors = OnnxEmbedder.vectors
    bad = cache(lambda model: list(model.tokens(text).ids))

    def poisoned(self: OnnxEmbedder, batch: Sequence[Any]) -> Any:
        if any(list(tokens.ids) == bad(self) for tokens in batch):
            raise RuntimeError("poison")
        return vectors(self, batch)

    OnnxEmbedder.vectors = poisoned  # type: ignore[method-assign]


if __name__ == "__main__":
    if os.environ.get("POISON"):
        poison(os.environ["POISON"])
    app()
