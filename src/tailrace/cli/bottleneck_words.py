"""The words of the bottleneck's report, Korean and English; the same keys, the same holes.

Whole sentences only; behind a hole no Korean particle stands alone, for it depends on the sound before it.
"""

import json
from importlib import resources
from typing import Literal

Language = Literal["ko", "en"]

_I18N = resources.files("tailrace.cli") / "i18n"
_NAMES: tuple[Language, ...] = ("ko", "en")
WORDS: dict[Language, dict[str, str]] = {
    name: json.loads((_I18N / f"bottleneck.{name}.json").read_text(encoding="utf-8"))
    for name in _NAMES
}
