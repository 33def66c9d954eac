"""Turns texts and pairs into token ids; every text is read once, label ids are remembered.

Knows the `tokenizers` library; nothing of runtimes or scores.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from tailrace.models.errors import ModelUnavailable, UnreadableText
from tailrace.models.vocabulary import Vocabulary

# One text at a time is read here; a pool of threads of the library's own would only fight for the cores.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

TOKENIZERS_MAX = 4
"""Vocabularies that are kept for the next model that reads the same."""
_REMEMBERED = 4096
_PROBE = ("a", "b b")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The ids of one input and the segment each belongs to."""

    ids: list[int]
    types: list[int]
    cut: int = 0
    """How many ids did not fit and were left out."""


_kept: dict[bytes, Tokenizer] = {}


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer.json, without the padding and truncation it may prescribe.

    Files of equal content share one tokenizer: a large vocabulary takes half a second to read and a
    hundred megabytes to hold, and the models of one family have the same.

    Raises:
        ModelUnavailable: it cannot be read.

    """
    try:
        content = path.read_bytes()
        digest = sha256(content).digest()
        tokenizer = _kept.get(digest) or Tokenizer.from_buffer(content)
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise ModelUnavailable(f"{path} cannot be read as a tokenizer ({error})") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    _kept.pop(digest, None)
    _kept[digest] = tokenizer
    while len(_kept) > TOKENIZERS_MAX:
        _kept.pop(next(iter(_kept)), None)
    return tokenizer


class TextTokens:
    """Tokenises single texts, with the special tokens around them."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self.vocabulary = Vocabulary(tokenizer)
        probe = tokenizer.encode(_PROBE[0])
        inner = _plain(tokenizer, _PROBE[0])
        at = _find(probe.ids, inner, 0)
        self._before = probe.ids[:at]
        self._after = probe.ids[at + len(inner) :]
        self._room = max_tokens - len(self._before) - len(self._after)

    def encode(self, prefix: str, text: str, *, left: bool = False) -> Tokens:
        """The ids of one text behind a prefix, cut to what the model reads.

        What does not fit is left out at the end, or with `left` at the beginning.
        """
        plain = _plain(self._tokenizer, prefix, text)
        cut = max(0, len(plain) - self._room)
        kept = plain[cut:] if left else plain[: self._room]
        ids = [*self._before, *kept, *self._after]
        return Tokens(ids, [0] * len(ids), cut)


class PairTokens:
    """Joins a text's ids with a label's ids the way the tokenizer's pair template does."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self.vocabulary = Vocabulary(tokenizer)
        probe = tokenizer.encode(*_PROBE)
        first, second = (_plain(tokenizer, text) for text in _PROBE)
        at = _find(probe.ids, first, 0)
        between = at + len(first)
        then = _find(probe.ids, second, between)
        end = then + len(second)
        self._before = Tokens(probe.ids[:at], probe.type_ids[:at])
        self._between = Tokens(probe.ids[between:then], probe.type_ids[between:then])
        self._after = Tokens(probe.ids[end:], probe.type_ids[end:])
        self._types = probe.type_ids[at], probe.type_ids[then]
        special = len(self._before.ids) + len(self._between.ids) + len(self._after.ids)
        self._room = max_tokens - special
        self._label = lru_cache(maxsize=_REMEMBERED)(self._encode_label)

    def text(self, text: str) -> list[int]:
        """The ids of a text, without what stands around them."""
        return _plain(self._tokenizer, text)

    def join(self, text: list[int], label: str) -> Tokens:
        """The input for one pair; a text that is too long loses its end."""
        second = self._label(label)
        first = text[: self._room - len(second)]
        return self._joined(first, second, len(text) - len(first))

    def fit(
        self,
        query: Sequence[int],
        text: Sequence[int],
        *,
        text_first: bool,
        left: bool = False,
        text_max: int | None = None,
    ) -> Tokens:
        """The input for a query and a text, whichever of them the model reads first.

        The text gives way: it loses its end (with `left` its beginning) beyond `text_max` ids or what
        there is room for. A query that would take more than half from a long text is cut too.
        """
        asked = query[: max(self._room // 2, self._room - len(text))]
        room = self._room - len(asked)
        room = room if text_max is None else min(room, text_max)
        kept = text[max(0, len(text) - room) :] if left else text[:room]
        cut = len(query) - len(asked) + len(text) - len(kept)
        return self._joined(kept, asked, cut) if text_first else self._joined(asked, kept, cut)

    def fit_pair(self, first: str, second: str, *, left: bool = False) -> Tokens:
        """The input for two texts of any length in this order; the longer of them gives way."""
        one, other = self.text(first), self.text(second)
        text_first = len(one) > len(other)
        query, text = (other, one) if text_first else (one, other)
        return self.fit(query, text, text_first=text_first, left=left)

    def _joined(self, first: Sequence[int], second: Sequence[int], cut: int) -> Tokens:
        return Tokens(
            [*self._before.ids, *first, *self._between.ids, *second, *self._after.ids],
            [
                *self._before.types,
                *([self._types[0]] * len(first)),
                *self._between.types,
                *([self._types[1]] * len(second)),
                *self._after.types,
            ],
            cut,
        )

    def count(self, text: list[int], label: str) -> int:
        """How many ids `join` would give."""
        second = len(self._label(label))
        special = len(self._before.ids) + len(self._between.ids) + len(self._after.ids)
        return min(len(text), self._room - second) + second + special

    def _encode_label(self, label: str) -> tuple[int, ...]:
        # A label may take half the room, so that some of the text is always read.
        return tuple(_plain(self._tokenizer, label)[: self._room // 2])


def _plain(tokenizer: Tokenizer, *texts: str) -> list[int]:
    try:
        # The variant that keeps no offsets, which nobody asks for: a fifth less work.
        read = tokenizer.encode_batch_fast(["".join(texts)], add_special_tokens=False)
        ids: list[int] = read[0].ids
    except (TypeError, ValueError) as error:
        raise UnreadableText(f"The text cannot be read as Unicode ({error}).") from None
    return ids


def _find(ids: list[Any], part: list[Any], start: int) -> int:
    for at in range(start, len(ids) - len(part) + 1):
        if ids[at : at + len(part)] == part:
            return at
    raise ModelUnavailable("the tokenizer does not keep a text's ids together; it cannot be used")
