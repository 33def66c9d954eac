"""One ONNX Runtime session in this process: how it is opened, how a list of inputs is run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray
from tailrace.models.session import check_inputs, pad
from tailrace.models.tokens import Tokens


class OnnxSession:
    """The weights in memory; what stands in a data file beside the graph is mapped, not copied."""

    def __init__(self, path: Path, *, arena: bool = True) -> None:
        options = ort.SessionOptions()
        # Several callers with one thread each beat one caller with many, and leave no nested pools.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.enable_cpu_mem_arena = arena
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - the runtime raises its own kinds of Exception
            raise ModelUnavailable(f"{path} cannot be opened as an ONNX model ({error})") from None
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self.outputs: list[str] = [entry.name for entry in self._session.get_outputs()]
        check_inputs(path, self._inputs)

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        """One run over inputs padded to the longest of them."""
        arrays = pad(batch)
        feed = {name: arrays[name] for name in self._inputs}
        result: Any = self._session.run([output], feed)[0]
        return np.asarray(result, np.float32)

    def close(self) -> None:
        """Nothing: the weights go with the object."""
