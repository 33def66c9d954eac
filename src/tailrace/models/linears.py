"""How a graph multiplies token rows with weights: in row-wise int8, or in float32 for reference.

Knows ONNX Runtime's operators and nothing of encoders. Rows are a matrix (tokens x columns), because a
per-row scale is then a plain per-axis scale: QuantizeLinear does in one pass what otherwise takes five.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tailrace.models.graph import CONTRIB, Graph
from tailrace.models.port import FloatArray

_GELU_FLOOR = 0.17
"""|gelu(x)| below zero never exceeds 0.16998, so the largest magnitude needs no pass of Abs."""


class Linears(Protocol):
    """How a graph multiplies rows with weights."""

    def rows(
        self, x: str, *, divisors: FloatArray | None = None, after_gelu: bool = False
    ) -> Callable[[str, FloatArray], str]:
        """Prepare rows once; the returned function multiplies them with a named weight, no bias.

        `divisors`, one per column, say how much larger some columns are than the others.
        """


class FloatLinears:
    """Plain float32: the reference that gates compare with."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def rows(
        self, x: str, *, divisors: FloatArray | None = None, after_gelu: bool = False
    ) -> Callable[[str, FloatArray], str]:
        """Rows as they are."""
        del divisors, after_gelu

        def multiply(name: str, weight: FloatArray) -> str:
            return self._graph.op("MatMul", x, self._graph.constant(f"{name}.weight", weight.T))

        return multiply


class RowInt8Linears:
    """int8 with one activation scale per token and one weight scale per output.

    A token's scale depends on that token only, so a neighbour in the batch changes nothing; the
    runtime's own dynamic quantisation takes one scale for the whole batch.
    """

    def __init__(self, graph: Graph, some_rows: str) -> None:
        self._graph = graph
        one = graph.constant("unit_scale", np.float32(1))
        self._one = one
        self._zero = graph.constant("zero_128", np.uint8(128))
        self._last = graph.constant("last_axis", np.array([-1], np.int64))
        # One zero point per row, for QuantizeLinear along the rows; the same for all layers.
        count = graph.op("Shape", some_rows, end=1)
        expand = graph.constant("zero_row", np.array([128], np.uint8))
        self._zeros = graph.op("Expand", expand, count)

    def rows(
        self, x: str, *, divisors: FloatArray | None = None, after_gelu: bool = False
    ) -> Callable[[str, FloatArray], str]:
        """Quantise each row by its largest magnitude.

        A few columns of a norm's output are ten times larger than the rest and would take the steps
        from them; dividing here and multiplying the weights instead changes nothing but that.
        """
        graph = self._graph
        if divisors is not None:
            x = graph.op("Mul", x, graph.constant(f"{x}.smoothing", 1 / divisors))
        magnitude = x if after_gelu else graph.op("Abs", x)
        top = graph.op("ReduceMax", magnitude, self._last, keepdims=0)
        floor = _GELU_FLOOR if after_gelu else 1e-9
        top = graph.op("Max", top, graph.constant(f"floor_{floor}", np.float32(floor)))
        scale = graph.op("Mul", top, graph.constant("per_step", np.float32(1 / 127)))
        quantised = graph.op("QuantizeLinear", x, scale, self._zeros, axis=0)
        column = graph.op("Unsqueeze", scale, self._last)

        def multiply(name: str, weight: FloatArray) -> str:
            weight = weight if divisors is None else weight * divisors
            steps = np.maximum(np.abs(weight).max(axis=1), 1e-9) / 127
            codes = np.clip(np.round(weight / steps[:, None]), -127, 127).astype(np.int8)
            product = graph.op(
                "MatMulIntegerToFloat",
                quantised,
                graph.constant(f"{name}.codes", codes.T),
                self._one,
                graph.constant(f"{name}.steps", steps.astype(np.float32)),
                self._zero,
                domain=CONTRIB,
            )
            return graph.op("Mul", product, column)

        return multiply
