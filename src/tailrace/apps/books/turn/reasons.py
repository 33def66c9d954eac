"""Why each book: one question to the model for all cards, and the check of its answer.

The answer is one flat object whose short reasons come first, so that every card has its short text while the
long ones are still being written. Knows nothing of streams.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tailrace.apps.books.turn.spec import Message

CARDS_MAX = 5
"""Cards of one turn."""
SHORT_CHARS_MAX = 80
LONG_CHARS_MAX = 400
TOLD_CHARS_MAX = 300
"""How much of a book's description the model is told."""

Kind = Literal["short", "long"]

ASK = (
    "You recommend books. For each numbered book write why it fits what the person asked for, in the "
    "person's language, from what is told here and nothing else. short_N: one sentence of at most "
    "{short} characters. long_N: two or three sentences of at most {long} characters. "
    "Answer with JSON only, all short_N before the long_N.\n\n{books}"
)


def schema(count: int) -> dict[str, Any]:
    """The shape of the answer for `count` cards; the order of properties is the order of writing."""
    bounds: dict[Kind, int] = {"short": SHORT_CHARS_MAX, "long": LONG_CHARS_MAX}
    properties = {
        f"{kind}_{number}": {"type": "string", "minLength": 1, "maxLength": most}
        for kind, most in bounds.items()
        for number in range(1, count + 1)
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def asking(messages: Sequence[Message], books: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The messages that ask for the reasons of all books."""
    listed = "\n".join(f"{number}. {_told(book)}" for number, book in enumerate(books, 1))
    ask = ASK.format(short=SHORT_CHARS_MAX, long=LONG_CHARS_MAX, books=listed)
    said = [{"role": message.role, "content": message.content} for message in messages]
    return [{"role": "system", "content": ask}, *said]


def place(name: str, count: int) -> tuple[Kind, int] | None:
    """Which reason a field is, and of which card (from 0); None for a field that nobody asked for."""
    kind, _, number = name.partition("_")
    if kind not in {"short", "long"} or not number.isdecimal() or not 1 <= int(number) <= count:
        return None
    return ("short" if kind == "short" else "long"), int(number) - 1


def usable(kind: Kind, text: str) -> str | None:
    """The reason as it may be shown; None where it may not."""
    made = " ".join(unicodedata.normalize("NFC", text).split())
    most = SHORT_CHARS_MAX if kind == "short" else LONG_CHARS_MAX
    spoken = any(sign.isalpha() for sign in made)
    return made if spoken and len(made) <= most else None


def _told(book: Mapping[str, Any]) -> str:
    """A book in one line."""
    about = " ".join(str(book.get("description") or "").split())[:TOLD_CHARS_MAX]
    facts = [book.get("title"), book.get("author"), book.get("year"), book.get("category"), about]
    return " · ".join(str(fact) for fact in facts if fact)
