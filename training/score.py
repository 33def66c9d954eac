"""Scores texts with the int8 graph the server runs, made of any adapter file.

Knows the product's reader and graph; needs no torch.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailrace.models.chunks import plan_chunks
from tailrace.models.convert import read_package_cross_encoder
from tailrace.models.encoder_graph import write_encoder
from tailrace.models.onnx_session import OnnxSession
from tailrace.models.port import FloatArray
from tailrace.models.tokenizer_file import build_tokenizer
from tailrace.models.tokens import PairTokens

MAX_TOKENS = 160


class Int8Scorer:
    """The cross-encoder as converted for the server: cut vocabulary, row-wise int8."""

    def __init__(self, adapter: Path, *, int8: bool = True) -> None:
        weights, pieces = read_package_cross_encoder(adapter.read_bytes())
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-training-")
        graph = Path(self._folder.name) / "model.onnx"
        write_encoder(weights, graph, int8=int8)
        self._session = OnnxSession(graph)
        self._tokens = PairTokens(build_tokenizer(pieces, segments=True), MAX_TOKENS)

    def logits(self, texts: Sequence[str], topics: Sequence[str]) -> FloatArray:
        """Texts x topics, after the adapter's own calibration."""
        ids = [self._tokens.text(text) for text in texts]
        pairs = [self._tokens.join(text, topic) for text in ids for topic in topics]
        found = np.zeros(len(pairs), np.float32)
        for chunk in plan_chunks([len(pair.ids) for pair in pairs], budget=400):
            found[chunk] = self._session.run([pairs[n] for n in chunk], "logits")[:, 0]
        return found.reshape(len(texts), len(topics))

    def close(self) -> None:
        """Remove the converted model."""
        self._folder.cleanup()
