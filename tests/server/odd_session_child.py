"""A model's process that takes its time, and that some letters make crash or hang."""

import argparse
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from tokenizers import Tokenizer

from tailrace.models.onnx_session import OnnxSession
from tailrace.models.port import FloatArray
from tailrace.models.session_child import die_with_parent, serve
from tailrace.models.tokens import Tokens

CRASHES, HANGS = "z", "x"


class OddSession(OnnxSession):
    def __init__(self, path: Path, run_s: float) -> None:
        super().__init__(path)
        self._run_s = run_s
        tokenizer = Tokenizer.from_file(str(path.with_name("tokenizer.json")))
        self._crashes, self._hangs = (tokenizer.token_to_id(sign) for sign in (CRASHES, HANGS))

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        if any(self._crashes in tokens.ids for tokens in batch):
            os.abort()
        if any(self._hangs in tokens.ids for tokens in batch):
            time.sleep(3600)
        time.sleep(self._run_s)
        return super().run(batch, output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--run-s", type=float)
    options = parser.parse_args()
    die_with_parent(options.parent)
    serve(Connection(options.fd), OddSession(options.path, options.run_s))


if __name__ == "__main__":
    main()
