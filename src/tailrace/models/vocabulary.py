"""A tokenizer's own view of a text: its pieces and where they stand, and the way back from ids.

For callers who ask about tokens; the models themselves read through tokens.py. Knows no runtime.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from tailrace.models.errors import UnreadableText


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a text; special ones stand nowhere in it."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class Vocabulary:
    """Takes texts apart and puts ids together."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.size: int = tokenizer.get_vocab_size()

    def pieces(self, text: str, *, special: bool = True) -> list[Piece]:
        """The tokens of a text, with those around it unless `special` is off."""
        try:
            read = self._tokenizer.encode(text, add_special_tokens=special)
        except (TypeError, ValueError) as error:
            raise UnreadableText(f"The text cannot be read as Unicode ({error}).") from None
        made = []
        for number, name, added, (start, stop) in zip(
            read.ids, read.tokens, read.special_tokens_mask, read.offsets, strict=True
        ):
            if added:
                made.append(Piece(number, name, True, None, None))
            else:
                made.append(Piece(number, text[start:stop], False, start, stop))
        return made

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of some ids; raises UnreadableText for an id that is none."""
        for number in ids:
            if not 0 <= number < self.size:
                raise UnreadableText(f"{number} is no token; ids go from 0 to {self.size - 1}.")
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=skip_special)
        return text
