"""The same behind OpenVINO, for those who installed the extra `openvino`.

Knows OpenVINO and nothing of texts or threads. A compiled model is shared; every thread that runs it
gets a request of its own, on one core each, as the slots of a lane want it.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailrace.models.errors import ModelUnavailable
from tailrace.models.port import FloatArray
from tailrace.models.session import KNOWN_INPUTS, check_inputs, pad
from tailrace.models.tokens import Tokens

INSTALL = "pip install 'tailrace[openvino]'"


class OpenvinoSession:
    """A model file compiled for this machine's cores."""

    def __init__(self, path: Path) -> None:
        try:
            import openvino  # noqa: PLC0415 - an extra: only who asks for it needs it
        except ImportError:
            raise ModelUnavailable(f"openvino is not installed; run: {INSTALL}") from None
        _check_operators(path)
        core = openvino.Core()
        hints = {"INFERENCE_NUM_THREADS": 1, "ENABLE_MMAP": True}
        try:
            model = core.read_model(str(path))
            self._model: Any = core.compile_model(model, "CPU", hints)
        except RuntimeError as error:
            said = str(error).strip().splitlines()[-1]
            raise ModelUnavailable(
                f'{path} cannot be opened by OpenVINO ({said}); take runtime = "onnxruntime"'
            ) from None
        self._inputs = [port.get_any_name() for port in self._model.inputs]
        self.outputs: list[str] = [n for port in self._model.outputs for n in port.get_names()]
        check_inputs(path, self._inputs)
        self._own = threading.local()

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        """One run over inputs padded to the longest of them."""
        request = getattr(self._own, "request", None)
        if request is None:
            request = self._own.request = self._model.create_infer_request()
        arrays = pad(batch)
        request.infer({name: arrays[name] for name in KNOWN_INPUTS if name in self._inputs})
        return np.array(request.get_tensor(output).data, np.float32)

    def close(self) -> None:
        """Nothing: the weights go with the object."""


def _check_operators(path: Path) -> None:
    """Refuse what OpenVINO compiles without a word and then runs to wrong answers."""
    import onnx  # noqa: PLC0415 - twelve MiB that the processes of the other runtime need not have

    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # noqa: BLE001 - the parser raises its own kinds of Exception
        raise ModelUnavailable(f"{path} cannot be opened as an ONNX model ({error})") from None
    if any(node.op_type == "MatMulInteger" for node in graph.node):
        raise ModelUnavailable(
            f"{path} multiplies in whole numbers (MatMulInteger), which OpenVINO gets wrong; give it "
            'the model in float32, or take runtime = "onnxruntime"'
        )
