"""A recommendation turn: conversation to spec, search, then one call for the reasons of all cards.

Gives out events as they happen; keeps nothing: a card carries its texts, and whoever asked keeps them. When
the model cannot, the person's own words are searched and the cards come without reasons, and both are said.
"""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.apps.books.turn import reasons
from tailrace.apps.books.turn import spec as specs
from tailrace.apps.books.turn.clocks import ClockSettings, StageTimeout, TurnClocks
from tailrace.apps.books.turn.fields import FlatObject, NotFlat
from tailrace.apps.books.turn.generator import Generator, Tokens
from tailrace.apps.books.turn.spec import BadSpec, Message, SearchSpec
from tailrace.core.clock import Clock
from tailrace.core.errors import TailraceError
from tailrace.serve.served import Terms

SPEC_TOKENS_MAX = 200
"""Tokens of a spec."""
REASON_TOKENS_MAX = 320
"""Tokens of one card's two reasons."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search gave: books as they are shown, and how they were found."""

    books: list[dict[str, Any]]
    mode: str
    degraded: tuple[str, ...] = ()


Find = Callable[[SearchSpec, int], Awaitable[Found]]
"""The search: the best books for a spec, at most so many."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of a turn."""

    name: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """How a turn ended, for those who count."""

    outcome: str
    """done, degraded or error."""
    stage: str
    """Where it ended where that was an error, else empty."""
    tokens: Tokens
    seconds: float


@dataclass(frozen=True, slots=True)
class Means:
    """What turns are made with."""

    find: Find
    generator: Generator | None
    """None where no language model is set up."""
    clocks: ClockSettings
    clock: Clock
    categories: Callable[[], Sequence[str]] = tuple
    """The catalogue's categories."""
    spec_by_model: bool = True
    """Whether the model makes the search out of the conversation, or the person's last words do."""
    grounded: bool = False
    """Whether a spec must share words with the conversation: for models too small for the language."""
    ended: Callable[[TurnEnded], None] = lambda _: None


class Broken(Exception):
    """The turn cannot go on; cards may be there."""

    def __init__(self, stage: str, error: TailraceError) -> None:
        super().__init__(str(error))
        self.stage = stage
        self.error = error


@dataclass(slots=True)
class Turn:
    """One turn; its events come once."""

    means: Means
    messages: Sequence[Message]
    count: int = 3
    terms: Terms = field(default_factory=Terms)
    tokens: Tokens = field(default_factory=Tokens)
    cards: list[dict[str, Any]] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    marks: list[tuple[str, float]] = field(default_factory=list)
    """The parts that have ended, each with its end; the first has no name: the beginning."""
    broke: str = ""
    """The code of what ended it, where that was an error."""

    async def events(self) -> AsyncGenerator[Happened]:
        """`spec`, `cards`, `short.delta`, `short.done`, `long.delta`, `long.done`, then `done` or `error`."""
        began = self.means.clock.now()
        self.marks.append(("", began))
        clocks = TurnClocks(self.means.clocks)
        stage = ""
        try:
            async with aclosing(self._steps(clocks)) as steps:
                async for happened in steps:
                    yield self._timed(happened, began)
            end = Happened("done", self._result())
        except Broken as broken:
            stage, self.broke = broken.stage, broken.error.code
            about = {"stage": stage, "code": broken.error.code, "detail": str(broken.error)}
            end = Happened("error", {**about, "partial": self._result()})
        seconds = self.means.clock.now() - began
        outcome = "error" if stage else "degraded" if self.degraded else "done"
        self.means.ended(TurnEnded(outcome, stage, self.tokens, seconds))
        yield self._timed(end, began)

    async def _steps(self, clocks: TurnClocks) -> AsyncGenerator[Happened]:
        spec, by, usable = await self._spec(clocks)
        self._mark("spec")
        yield Happened("spec", {**spec.model_dump(), "by": by})
        try:
            found = await clocks.call().wait(self.means.find(spec, self.count))
        except StageTimeout as error:
            raise Broken("search", error) from error
        except TailraceError as error:
            raise Broken("search", error) from error
        self._mark("search")
        self.degraded += [f"search-{why}" for why in found.degraded]
        self.cards = [_card(book, spec) for book in found.books]
        yield Happened(
            "cards", {"cards": self.cards, "mode": found.mode, "degraded": self.degraded}
        )
        if self.cards and usable:
            async with aclosing(self._reasons(clocks)) as told:
                async for happened in told:
                    yield happened

    # -- the spec -------------------------------------------------------------------------------

    async def _spec(self, clocks: TurnClocks) -> tuple[SearchSpec, str, bool]:
        """The spec, who made it, and whether the model is worth asking again."""
        generator = self.means.generator
        if generator is None:
            self.degraded += ["llm-off"]
            return specs.last_words(self.messages), "words", False
        if not self.means.spec_by_model:
            return specs.last_words(self.messages), "words", True
        categories = self.means.categories()
        asked = specs.asking(self.messages, categories)
        writing = generator.write(asked, "spec", specs.SCHEMA, SPEC_TOKENS_MAX, clocks, self.terms)
        usable = True
        try:
            async with aclosing(writing.pieces()) as pieces:
                spec = specs.read_spec("".join([text async for text in pieces]), categories)
            if not self.means.grounded or specs.grounded(spec, self.messages):
                return spec, "model", True
            why = "spec-ungrounded"
        except BadSpec:
            why = "spec-invalid"
        except TailraceError as error:
            why = f"spec-{error.code}"
            usable = error.code == "llm-truncated"
            if isinstance(error, StageTimeout) and error.stage == "total":
                raise Broken("total", error) from error
        finally:
            self.tokens.add(writing.tokens)
        self.degraded += [why] if usable else [why, "no-reasons"]
        return specs.last_words(self.messages), "words", usable

    # -- the reasons ----------------------------------------------------------------------------

    async def _reasons(self, clocks: TurnClocks) -> AsyncGenerator[Happened]:
        generator = self.means.generator
        assert generator is not None
        count = len(self.cards)
        shape, asked = reasons.schema(count), reasons.asking(self.messages, self.cards)
        most = REASON_TOKENS_MAX * count
        writing = generator.write(asked, "reasons", shape, most, clocks, self.terms)
        written = FlatObject()
        begun = False
        try:
            async with aclosing(writing.pieces()) as pieces:
                async for text in pieces:
                    if not begun:
                        begun = True
                        self._mark("input")
                    for part in written.feed(text):
                        for happened in self._told(part.name, part.text, written, part.closed):
                            yield happened
            if not written.complete:
                raise NotFlat("the answer ended before it was closed")
        except NotFlat as error:
            self.degraded += ["reasons-invalid"]
            raise Broken("generation", _Unreadable(f"The model's answer: {error}.")) from error
        except StageTimeout as error:
            raise Broken(error.stage, error) from error
        except TailraceError as error:
            if begun:
                raise Broken("generation", error) from error
            self.degraded += [f"llm-{error.code}", "no-reasons"]
        finally:
            self._mark("generation" if begun else "input")
            self.tokens.add(writing.tokens)

    def _told(self, name: str, text: str, written: FlatObject, closed: bool) -> list[Happened]:
        """The events of some more text of one field."""
        where = reasons.place(name, len(self.cards))
        if where is None:
            return []
        kind, number = where
        card = self.cards[number]
        events = []
        if text:
            events.append(Happened(f"{kind}.delta", {"card_id": card["card_id"], "text": text}))
        if closed:
            whole = reasons.usable(kind, written.values[name])
            card[f"reason_{kind}"] = whole
            if whole is None:
                self.degraded.append(f"reason-{kind}-unusable")
            events.append(Happened(f"{kind}.done", {"card_id": card["card_id"], "text": whole}))
        return events

    # -- what is said at the end ----------------------------------------------------------------

    def _mark(self, part: str) -> None:
        self.marks.append((part, self.means.clock.now()))

    def _timed(self, happened: Happened, began: float) -> Happened:
        at_ms = round((self.means.clock.now() - began) * 1000, 3)
        return Happened(happened.name, {**happened.body, "at_ms": at_ms})

    def _result(self) -> dict[str, Any]:
        """Cards with what is finished of their reasons, what it cost and how long each part took."""
        tokens = self.tokens
        marks = zip(self.marks, self.marks[1:], strict=False)
        timing = {part: round((at - before) * 1000, 3) for (_, before), (part, at) in marks}
        return {
            "cards": self.cards,
            "degraded": list(dict.fromkeys(self.degraded)),
            "tokens": {
                "prompt": tokens.prompt,
                "completion": tokens.completion,
                "reasoning": tokens.reasoning,
                "thoughts_seen": tokens.thoughts,
                "counted": tokens.counted,
                "calls": tokens.calls,
            },
            "timing_ms": timing,
        }


class _Unreadable(TailraceError):
    """The model's answer cannot be read."""

    code = "bad-output"


def _card(book: dict[str, Any], spec: SearchSpec) -> dict[str, Any]:
    """A book as a card; its id stands for this book under this spec, today and tomorrow."""
    asked = orjson.dumps([book["id"], spec.model_dump()], option=orjson.OPT_SORT_KEYS)
    card_id = hashlib.sha256(asked).hexdigest()[:16]
    return {"card_id": card_id, **book, "reason_short": None, "reason_long": None}
