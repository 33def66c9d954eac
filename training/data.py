"""The texts: reads training/data, splits it, and says which topics may serve as wrong answers for which text.

Knows files and labels; nothing of tokens, tensors or models.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

REVIEW_FILES = ("reviews.jsonl", "short_phrases.jsonl", "long_reviews.jsonl")
FOREIGN_FILES = ("other_topics.jsonl", "foreign_topics.jsonl")
NOTHING_FILES = ("no_topic.jsonl", "about_nothing.jsonl", "about_nothing_check.jsonl")
FILES = (*REVIEW_FILES, *FOREIGN_FILES, *NOTHING_FILES)

UNSEEN_GROUPS = ("shop", "book")
"""Groups of foreign topics that training never reads: they stand for topics of the user's own."""

# Foreign topics so close in meaning to a restaurant topic that a review may well be about both.
_TOO_CLOSE = {
    *("soundproof", "breakfast", "medcost", "explain", "shipping", "durability", "pool", "bedding"),
    *("checkin", "ui", "gym.membership", "gym.locker", "gym.upkeep", "car.estimate", "work.boss"),
    *("house.sunlight", "house.landlord", "house.neighborhood", "air.legroom", "air.delay"),
    *("air.inflight", "vet.petcare", "bank.app_transfer", "bank.callcenter", "cosme.scent"),
    *("camp.washroom", "camp.manners", "move.punctual", "move.handling", "expo.crowd"),
    *("home.devicenoise", "home.aftersales"),
}
# Restaurant topics that no text about another trade is about.
_RESTAURANT_ONLY = ("parking", "diet", "soldout", "portion", "drinks", "packaging", "variety")
_NOT_AGAINST = {"parking": {"hotel"}, "drinks": {"hotel", "air"}, "packaging": {"home", "cosme"}}


@dataclass(frozen=True, slots=True)
class Text:
    """One text and what it is about; `maybe` are topics one can argue about, neither right nor wrong."""

    text: str
    topics: list[str]
    maybe: list[str]
    split: str
    lang: str
    group: str
    main: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Item:
    """A training text with its right topics and two pools of wrong ones."""

    text: str
    right: list[str]
    wrong: list[str]
    foreign: list[str] = field(default_factory=list)
    share: float = 1.0
    """How often an epoch reads it."""


def read_texts(*names: str, folder: Path = DATA) -> list[Text]:
    """All texts of some files, in order."""
    return [
        Text(
            text=row["text"],
            topics=row["topics"],
            maybe=row.get("maybe", []),
            split=row["split"],
            lang=row.get("lang", "ko"),
            group=row.get("group", "restaurant"),
            main=row["main"],
            source=row.get("source", "first-writing"),
        )
        for name in names
        for row in _rows(folder / name)
    ]


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Topics:
    """Every topic's wordings; the last Korean and English one of the first file are never trained on."""

    def __init__(self, folder: Path = DATA) -> None:
        first = json.loads((folder / "topics_paraphrases.json").read_text("utf-8"))
        more = json.loads((folder / "topic_wordings.json").read_text("utf-8"))
        self._first = first["topics"] | first["other"]
        self._more = more["topics"] | more["other"]
        self.restaurant: list[str] = list(first["topics"])
        self.group = {
            topic: entry["group"] for topic, entry in (first["other"] | more["other"]).items()
        }

    def base(self, topic: str) -> str:
        """The wording the product ships."""
        return str((self._first.get(topic) or self._more[topic])["base"])

    def wordings(self, topic: str) -> list[str]:
        """All wordings training may use, the base first."""
        first, more = self._first.get(topic, {}), self._more.get(topic, {})
        seen = [self.base(topic)]
        for lang in ("ko", "en"):
            seen += first.get(lang, [])[:2] + more.get(lang, [])
        return list(dict.fromkeys(seen))

    def unseen(self, topic: str, lang: str) -> str:
        """The wording kept out of training."""
        return str(self._first[topic][lang][2])

    @cached_property
    def trained_foreign(self) -> list[str]:
        """Foreign topics that training reads."""
        return [topic for topic, group in self.group.items() if group not in UNSEEN_GROUPS]

    @cached_property
    def unseen_foreign(self) -> list[str]:
        """Foreign topics that training never reads."""
        return [topic for topic, group in self.group.items() if group in UNSEEN_GROUPS]


def training_items(topics: Topics, rng: random.Random, *, old_share: float) -> list[Item]:
    """Everything training reads; texts of the first writing with the given share per epoch."""
    safe = [topic for topic in topics.trained_foreign if topic not in _TOO_CLOSE]
    items = []
    for text in _train(*REVIEW_FILES):
        wrong = [t for t in topics.restaurant if t not in text.topics and t not in text.maybe]
        share = old_share if text.source == "first-writing" else 1.0
        items.append(Item(text.text, text.topics, wrong, safe, share))
    for text in _train(*FOREIGN_FILES):
        trade = [t for t in topics.trained_foreign if topics.group[t] == text.group]
        wrong = [t for t in trade if t not in text.topics]
        strangers = [t for t in safe if topics.group[t] != text.group]
        wrong += rng.sample(strangers, 3)
        ours = [t for t in _RESTAURANT_ONLY if text.group not in _NOT_AGAINST.get(t, ())]
        share = old_share if text.source == "first-writing" else 1.0
        items.append(Item(text.text, text.topics, wrong, ours, share))
    for text in _train(*NOTHING_FILES):
        wrong = [t for t in topics.restaurant if t not in text.maybe]
        items.append(Item(text.text, [], wrong, safe, 0.8))
    return items


def _train(*names: str) -> list[Text]:
    return [text for text in read_texts(*names) if text.split == "train"]


def dev_reviews() -> list[Text]:
    """The reviews every figure is measured on; never trained on."""
    return [text for text in read_texts(*REVIEW_FILES) if text.split == "dev"]


def unseen_foreign_texts() -> list[Text]:
    """Texts about topics of trades that training never reads."""
    return [text for text in read_texts(*FOREIGN_FILES) if text.split == "zeroshot"]


def nothing_texts() -> list[Text]:
    """Texts about nothing that training does not read."""
    return [text for text in read_texts(*NOTHING_FILES) if text.split != "train"]


def truth(texts: Sequence[Text], topics: Sequence[str]) -> list[list[bool]]:
    """Which of the topics each text is about."""
    return [[topic in text.topics for topic in topics] for text in texts]
