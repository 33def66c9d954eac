"""What can be said of a request before its texts are read: how many tokens, and whether they are new.

Reading a text costs more than refusing it. Knows no lane and no policy.
"""

from collections.abc import Hashable, Iterable

TEXTS_SEEN_MAX = 20_000
"""Texts that are known to have been here; of others the answer cannot be known already."""
NEWEST = 0.05
"""The share of the newest text in the tokens that a character makes."""
DOUBT = 0.2
"""The share of the expected time on the model that may be spared: who might be in time is not refused unread."""  # noqa: E501


class Foresight:
    """Remembers which texts were read, and how many tokens their characters made."""

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}
        self._per_character = 0.0

    def read(self, texts: Iterable[Hashable], characters: int, tokens: float) -> None:
        """These texts were read and made so many tokens."""
        for text in texts:
            self._seen[hash(text)] = None
        while len(self._seen) > TEXTS_SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        if characters:
            newest = tokens / characters
            known = self._per_character or newest
            self._per_character = known + NEWEST * (newest - known)

    def seen(self, texts: Iterable[Hashable]) -> bool:
        """Whether one of these texts may have been here before."""
        return any(hash(text) in self._seen for text in texts)

    def tokens(self, characters: int) -> float:
        """How many tokens so many characters make; 0 before anything was read."""
        return self._per_character * characters
