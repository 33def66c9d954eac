"""The model as a hand-written server holds it: ONNX Runtime on the file that tailrace serves.

Every hand-written peer shares it, so that the comparison is about serving and not about models. Runs in
a peer's own venv: imports nothing of tailrace.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

TOKENS_MAX = 512


class Engine:
    """Texts in, unit vectors out: one padded run per call, on all cores of the process."""

    def __init__(self) -> None:
        folder = Path(os.environ["MODEL_DIR"])
        self._poison = os.environ.get("POISON", "")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(TOKENS_MAX)
        self._tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
        options = ort.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        options.log_severity_level = 3
        self._session = ort.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """[texts, dimensions]; a poison text fails the whole call, as a real fault would."""
        if self._poison and self._poison in texts:
            raise RuntimeError("poison")
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask}
        return self._session.run(["sentence_embedding"], feed)[0]
