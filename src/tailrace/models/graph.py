"""A thin pen for writing ONNX graphs; knows nothing of what is written with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"
"""The operator domain ONNX Runtime adds its own operators under."""

_OPSET = 21
_IR_VERSION = 10
_BESIDE_BYTES = 1 << 16
"""Constants from this size on stand in a data file beside the graph."""


class Graph:
    """Nodes and constants under construction."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, array: Any) -> str:
        """A named constant; the first writer of a name wins, so shared ones may be named again."""
        if name not in self._constants:
            value = np.asarray(array)
            value = value if value.ndim == 0 else np.ascontiguousarray(value)
            self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def packed_int4(self, name: str, shape: Sequence[int], packed: bytes) -> str:
        """A constant of signed 4-bit integers, two in a byte, the even one in the low half."""
        tensor = TensorProto(name=name, data_type=TensorProto.INT4, raw_data=packed)
        tensor.dims.extend(shape)
        self._constants[name] = tensor
        return name

    def op(
        self, kind: str, *inputs: str, out: str | None = None, domain: str = "", **attributes: Any
    ) -> str:
        """Append a node with one output and return the output's name."""
        name = out or f"{kind}_{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(
                kind, list(inputs), [name], name=f"node_{name}", domain=domain, **attributes
            )
        )
        return name

    def save(
        self,
        path: Path,
        inputs: Sequence[tuple[str, Sequence[str]]],
        outputs: Sequence[tuple[str, Sequence[str | int]]],
    ) -> None:
        """Write the model file: int64 inputs and float outputs, by name and shape."""
        graph = helper.make_graph(
            self._nodes,
            "tailrace",
            [helper.make_tensor_value_info(n, TensorProto.INT64, s) for n, s in inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(CONTRIB, 1)],
            ir_version=_IR_VERSION,
            producer_name="tailrace",
        )
        # Beside the file, so that every process that runs the model maps the same weights.
        onnx.save(
            model,
            str(path),
            save_as_external_data=True,
            location=f"{path.name}_data",
            size_threshold=_BESIDE_BYTES,
        )
