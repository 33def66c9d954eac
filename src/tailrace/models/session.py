"""One ONNX Runtime session: what it wants, how it is opened, how a list of inputs is run.

Knows nothing of texts, labels or threads; safe to call from several threads at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

_KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class Session:
    """The weights in memory; one per model, shared by all threads."""

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
        if unknown := set(self._inputs) - _KNOWN_INPUTS:
            raise ModelUnavailable(
                f"{path} wants inputs we do not know: {', '.join(sorted(unknown))}; "
                f"export the model with {', '.join(sorted(_KNOWN_INPUTS))}"
            )

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        """One run over inputs padded to the longest of them."""
        arrays = pad(batch)
        feed = {name: arrays[name] for name in self._inputs}
        result: Any = self._session.run([output], feed)[0]
        return np.asarray(result, np.float32)


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
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
