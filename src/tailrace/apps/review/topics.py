"""The topics a review is read against: the 24 that ship, or the user's own.

Topics are texts: the model needs no training for new ones.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tailrace.serve.settings import BadConfiguration

TOPICS_MAX = 200
TOPIC_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Topics:
    """Ids and texts, in order; `fingerprint` changes with any of them."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    fingerprint: str

    def ranked(self, scores: Any) -> list[dict[str, Any]]:
        """Scores (one per topic) as the API shows them, best first."""
        order = sorted(range(len(self.ids)), key=lambda i: -scores[i])
        return [
            {"id": self.ids[i], "label": self.labels[i], "score": round(float(scores[i]), 4)}
            for i in order
        ]


def load_topics(file: Path | None = None) -> Topics:
    """Topics from a JSON object of id to text.

    Raises:
        BadConfiguration: the file is not there or not of that form.

    """
    where = "review.topics"
    try:
        shipped = files("tailrace.apps.review").joinpath("data/topics.json")
        raw = (file or shipped).read_text(encoding="utf-8")
        table = json.loads(raw)
    except OSError as fault:
        raise BadConfiguration([(where, f"cannot read {file}: {fault.strerror}")]) from fault
    except ValueError as fault:
        raise BadConfiguration([(where, f"{file} is not JSON: {fault}")]) from fault
    if not isinstance(table, dict) or not 1 <= len(table) <= TOPICS_MAX:
        raise BadConfiguration([(where, f"must be an object of 1 to {TOPICS_MAX} topics")])
    mistakes = [
        (f"{where}.{name}", f"must be a text of 1 to {TOPIC_CHARS_MAX} characters")
        for name, label in table.items()
        if not isinstance(label, str) or not 1 <= len(label.strip()) <= TOPIC_CHARS_MAX
    ]
    if mistakes:
        raise BadConfiguration(mistakes)
    digest = hashlib.sha256(json.dumps(list(table.items())).encode()).hexdigest()[:16]
    return Topics(tuple(table), tuple(table.values()), digest)
