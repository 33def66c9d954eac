"""Models that are one table: the answer to a text is the sum of the rows of its words.

Small enough to say beforehand what they must answer, and real: ONNX files that the real runtime runs.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_table(
    folder: Path, rows: Mapping[str, Sequence[float]], output: str, **config: Any
) -> Path:
    """A model folder; `output` is sentence_embedding or logits, `config` what config.json says."""
    folder.mkdir(parents=True, exist_ok=True)
    width = len(next(iter(rows.values())))
    table = np.zeros((len(SPECIAL) + len(rows), width), np.float32)
    table[len(SPECIAL) :] = list(rows.values())
    _write_graph(table, output, folder / "model.onnx")
    _tokenizer([*SPECIAL, *rows]).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _write_graph(table: np.ndarray, output: str, path: Path) -> None:
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    )
    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", table.shape[1]])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["read"]),
        helper.make_node("Cast", ["attention_mask"], ["float_mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["float_mask", "last"], ["wide_mask"]),
        helper.make_node("Mul", ["read", "wide_mask"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "one"], [output], keepdims=0),
    ]
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([-1], np.int64), "last"),
        numpy_helper.from_array(np.array([1], np.int64), "one"),
    ]
    graph = helper.make_graph(nodes, "table", [ids, mask], [made], constants)
    opset = helper.make_opsetid("", 21)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=10), str(path))


def _tokenizer(words: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer
