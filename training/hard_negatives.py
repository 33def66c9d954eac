"""Orders the wrong topics of every training text by how near the frozen encoder thinks they are.

Near but wrong is what teaches. Knows embeddings; nothing of torch.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.port import FloatArray
from training.data import Item, Topics

_BATCH = 16


def embed_all(embedder: OnnxEmbedder, texts: Sequence[str], prompt: str) -> FloatArray:
    """A unit vector per text, shortest texts first so that little is padded."""
    vectors = np.zeros((len(texts), 384), np.float32)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), _BATCH):
        chunk = order[start : start + _BATCH]
        rows = [embedder.tokens(texts[index], prompt=prompt) for index in chunk]
        vectors[chunk] = embedder.unit_vectors(rows)
    return vectors


def nearest_wrong(
    items: Sequence[Item], topics: Topics, embed: Callable[[Sequence[str], str], FloatArray]
) -> list[list[str]]:
    """Per item its wrong topics, the nearest first; centred, or a few topics would be near everything."""
    names = list(dict.fromkeys(topic for item in items for topic in item.wrong))
    column = {name: number for number, name in enumerate(names)}
    texts = embed([item.text for item in items], "query")
    labels = embed([topics.base(name) for name in names], "passage")
    near = texts @ labels.T
    near -= near.mean(axis=0)
    return [
        sorted(item.wrong, key=lambda name, row=row: -near[row, column[name]])
        for row, item in enumerate(items)
    ]
