"""A child as naive as the real one, without a model: every request takes memory and holds it a while."""

import argparse
import socket
import time
from typing import Any

from tailrace.models.child_main import Mark, serve

MIB = 1 << 20
TAKES_MIB = 10
HOLDS_S = 0.25


def answer(body: Any, mark: Mark) -> list[float]:
    """Scores by label, after taking memory that is really used."""
    mark("tokenize")
    if body["text"].startswith("raise"):
        raise FileNotFoundError(body["text"])
    held = bytearray(b"x" * (TAKES_MIB * MIB))
    time.sleep(HOLDS_S)
    mark("infer")
    count = len(body["labels"])
    mark("post")
    return [held[0] / 256 * (i + 1) / count for i in range(count)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    serve(socket.socket(fileno=parser.parse_args().fd), answer)
