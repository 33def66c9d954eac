"""A review box of the product whose model takes scripted times: a process of its own for measurements.

`scripted_box.py A B SPREAD [PATH=JSON ...]`: a run of k reviews takes (A + B k) milliseconds times the mean
of their weights, lognormal by text. Prints the address once it is ready.
"""

import hashlib
import json
import math
import sys
from collections.abc import Sequence
from statistics import NormalDist, fmean

from tailrace.apps.review.app import event_stream, review_app
from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.topics import load_topics
from tailrace.core.clock import MonotonicClock
from tailrace.core.estimate import ServiceTime
from tailrace.models.fake import FakeCrossEncoder
from tailrace.models.threads import InferenceThreads
from tailrace.serve.runner import bind, run
from tailrace.serve.settings import load

NORMAL = NormalDist()


def weight(text: str, spread: float) -> float:
    """What a text weighs: lognormal with mean 1, the same every time."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")
    share = (seed + 0.5) / (1 << 48)
    return math.exp(spread * NORMAL.inv_cdf(share) - spread * spread / 2)


def main() -> None:
    """Serve until told to stop."""
    a, b, spread = (float(word) for word in sys.argv[1:4])
    given = (entry.split("=", 1) for entry in sys.argv[4:])
    overrides = {path: json.loads(value) for path, value in given}
    settings = load(
        BoxSettings,
        environ={},
        overrides={"naive.enabled": False, "cache.entries_max": 0, **overrides},
    )

    def seconds(texts: Sequence[str]) -> float:
        return (a + b * len(texts)) / 1000 * fmean(weight(text, spread) for text in texts)

    model, topics, threads = (
        FakeCrossEncoder(seconds=seconds),
        load_topics(None),
        InferenceThreads(1),
    )
    cost = model.cost("x" * 40, topics.labels)
    service = ServiceTime((a + b) / 1000, cost)
    box = ReviewBox(settings, model, threads, topics, clock=MonotonicClock(), service=service)
    listener = bind("127.0.0.1", 0)
    stream = event_stream(box)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    run(
        review_app(box, stream),
        listener,
        grace_s=1.0,
        started=lambda: print(url, flush=True),
        stopping=stream.close,
    )


if __name__ == "__main__":
    main()
