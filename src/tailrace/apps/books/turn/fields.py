"""A JSON object of strings, read while it is being written: every field's text as it comes.

What it gives out is always a prefix of what the finished object will say, and a field is closed only by its
own quotation mark: nothing is guessed, nothing repaired. Knows nothing of what the fields mean.
"""

from dataclasses import dataclass

TEXT_CHARS_MAX = 1 << 18
"""The longest object that is read."""

ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
SPACE = " \t\r\n"
REPLACEMENT = "\ufffd"


class NotFlat(ValueError):
    """The text is not one JSON object whose values are strings."""


@dataclass(frozen=True, slots=True)
class FieldText:
    """Some more of a field's text; `closed` with its last."""

    name: str
    text: str
    closed: bool


class FlatObject:
    """Feed it text cut anywhere; `values` holds the closed fields, `complete` says the object is closed."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.complete = False
        self._state = self._before
        self._read = 0
        self._name = ""
        self._said: list[str] = []
        """Text of the open string."""
        self._fresh: list[str] = []
        """The part of it that has not been given out."""
        self._escape: str | None = None
        self._high = ""
        """The first half of a surrogate pair, waiting for the second."""
        self._out: list[FieldText] = []
        self._fence = ""

    def feed(self, text: str) -> list[FieldText]:
        """What `text` adds, in order; raises NotFlat."""
        self._read += len(text)
        if self._read > TEXT_CHARS_MAX:
            raise NotFlat(f"longer than {TEXT_CHARS_MAX} characters")
        for sign in text:
            self._state(sign)
        if self._state == self._in_value:
            self._give(closed=False)
        out, self._out = self._out, []
        return out

    # -- between strings ----------------------------------------------------------------------

    def _before(self, sign: str) -> None:
        """Space, or a code fence, before the object begins."""
        if sign == "{":
            self._state = self._key_or_end
            return
        self._fence += sign
        language = self._fence.strip("`" + SPACE).casefold()
        if not "json".startswith(language) or len(self._fence) > 16:
            raise NotFlat(f"text before the object: {self._fence[:40]!r}")

    def _key_or_end(self, sign: str) -> None:
        if sign == "}" and not self.values:
            self._end()
        elif sign == '"':
            self._said.clear()
            self._state = self._in_name
        elif sign not in SPACE:
            raise NotFlat(f"a name was expected, not {sign!r}")

    def _colon(self, sign: str) -> None:
        if sign == ":":
            self._state = self._value
        elif sign not in SPACE:
            raise NotFlat(f"a colon was expected, not {sign!r}")

    def _value(self, sign: str) -> None:
        if sign == '"':
            self._said.clear()
            self._fresh.clear()
            self._state = self._in_value
        elif sign not in SPACE:
            raise NotFlat(f"{self._name} is not a string")

    def _comma_or_end(self, sign: str) -> None:
        if sign == "}":
            self._end()
        elif sign == ",":
            self._state = self._next_key
        elif sign not in SPACE:
            raise NotFlat(f"a comma was expected, not {sign!r}")

    def _next_key(self, sign: str) -> None:
        if sign == "}":
            raise NotFlat("a name was expected, not '}'")
        self._key_or_end(sign)

    def _end(self) -> None:
        self.complete = True
        self._state = self._after

    def _after(self, sign: str) -> None:
        if sign not in "`" + SPACE:
            raise NotFlat(f"text after the object: {sign!r}")

    # -- inside strings -----------------------------------------------------------------------

    def _in_name(self, sign: str) -> None:
        if self._string(sign):
            self._name = "".join(self._said)
            if self._name in self.values:
                raise NotFlat(f"{self._name} stands twice")
            self._state = self._colon

    def _in_value(self, sign: str) -> None:
        if self._string(sign):
            self.values[self._name] = "".join(self._said)
            self._give(closed=True)
            self._state = self._comma_or_end

    def _give(self, *, closed: bool) -> None:
        if self._fresh or closed:
            self._out.append(FieldText(self._name, "".join(self._fresh), closed))
            self._fresh.clear()

    def _string(self, sign: str) -> bool:
        """Take one sign of a string; whether it was the closing mark."""
        if self._escape is not None:
            self._escaped(sign)
            return False
        if sign == "\\":
            self._escape = ""
            return False
        self._drop_high()
        if sign == '"':
            return True
        if sign < " ":
            raise NotFlat(f"a control character {sign!r} inside a string")
        self._say(sign)
        return False

    def _escaped(self, sign: str) -> None:
        """One more sign of an escape: a letter, or u and four digits."""
        assert self._escape is not None
        self._escape += sign
        if self._escape[0] != "u":
            if self._escape not in ESCAPES:
                raise NotFlat(f"\\{self._escape} is no escape")
            self._drop_high()
            self._say(ESCAPES[self._escape])
            self._escape = None
        elif len(self._escape) == 5:
            digits, self._escape = self._escape[1:], None
            if not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise NotFlat(f"\\u{digits} is no escape")
            self._unit(int(digits, 16))

    def _unit(self, unit: int) -> None:
        """One UTF-16 unit: halves of a pair are joined, half a pair alone is no character."""
        if 0xD800 <= unit < 0xDC00:
            self._drop_high()
            self._high = chr(unit)
        elif 0xDC00 <= unit < 0xE000:
            if self._high:
                pair = (self._high + chr(unit)).encode("utf-16", "surrogatepass").decode("utf-16")
                self._high = ""
                self._say(pair)
            else:
                self._say(REPLACEMENT)
        else:
            self._drop_high()
            self._say(chr(unit))

    def _drop_high(self) -> None:
        if self._high:
            self._high = ""
            self._say(REPLACEMENT)

    def _say(self, text: str) -> None:
        self._said.append(text)
        self._fresh.append(text)
