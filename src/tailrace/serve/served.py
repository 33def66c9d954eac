"""A model on offer: its lane, its door, and the one way of a request with one or many items.

tokenize -> cache, single flight -> admission of all items at once -> lane -> vectors or scores. The
dialects call this and know nothing of lanes; this knows nothing of their shapes.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from tailrace.cache.flights import Flights
from tailrace.cache.port import Cache
from tailrace.core.admission import LaneView
from tailrace.core.clock import Clock
from tailrace.core.errors import InputError, LaneFull, TailraceError
from tailrace.core.events import CacheLookup, Refused
from tailrace.core.lane import Lane
from tailrace.core.work import ReadyRun, Run, Stamps, Work
from tailrace.models.errors import BadOutput
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.doors import Door
from tailrace.serve.exchange import Journey
from tailrace.serve.foresight import DOUBT, Foresight
from tailrace.wire.tracing import BATCH_SIZE, INPUT_TOKENS

POOLED = "pooled"
PIECEWISE = "piecewise"
"""What is asked of the model for an item, and so its batch key: items of one kind share runs."""
INLINE_CHARS = 20_000
"""Up to so many characters are tokenised on the event loop; more go to a thread."""


class UnknownModel(TailraceError):
    """There is no such model here."""

    code = "unknown-model"


class WrongKind(InputError):
    """The model named is of another kind than the request."""

    code = "wrong-kind"


class NotOffered(InputError):
    """The model named cannot do this."""

    code = "not-offered"


Infer = Callable[[Sequence[Tokens]], FloatArray | Sequence[FloatArray]]
"""One run of a model: an answer per input, in order, on the calling thread."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a caller asks for beside the content: who it is, until when, how urgent."""

    caller: str = ""
    deadline: float = inf
    bulk: bool = False
    truncate: bool = True
    """Whether a text that is too long may lose its end; if not it is an error."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers in the order of the items, and what they cost."""

    values: list[FloatArray]
    tokens: list[int]
    truncated: list[bool]
    hits: int
    """Items whose answer was known."""
    batch_size: int
    fallback: str = ""
    """The model that answered in the place of the one asked for, if one did."""

    @property
    def tokens_total(self) -> int:
        """Tokens of all items, as they were read."""
        return sum(self.tokens)


@dataclass(slots=True)
class Item:
    """One input, ready for the model: its tokens, and what is asked about them."""

    tokens: Tokens
    kind: str = POOLED

    @property
    def truncated(self) -> bool:
        """Whether some of the text was left out."""
        return self.tokens.cut > 0

    @property
    def payload(self) -> "Item":
        """What the runner is given: all of it, for the kind says what to ask of the model."""
        return self

    @property
    def cost(self) -> float:
        """What it costs: tokens."""
        return float(len(self.tokens.ids))

    @property
    def key(self) -> Hashable:
        """What tells this input from every other."""
        return (self.kind, tuple(self.tokens.ids))


class Input(Protocol):
    """One input as ServedModel sees it; Item is the usual one."""

    @property
    def kind(self) -> str:
        """What is asked of the model for it; inputs of one kind share runs."""

    @property
    def truncated(self) -> bool:
        """Whether some of the text was left out."""

    @property
    def payload(self) -> Any:
        """What the model is given."""

    @property
    def cost(self) -> float:
        """What it costs: tokens, counted or estimated."""

    @property
    def key(self) -> Hashable:
        """What tells this input from every other."""


class TooLong(InputError):
    """A text is longer than the model reads, and truncation was not allowed."""


class ServedModel:
    """One model behind its lane, for requests of one or many items."""

    def __init__(
        self,
        name: str,
        info: ModelInfo,
        lane: Lane,
        door: Door,
        *,
        cache: Cache,
        clock: Clock,
        bulk_yields: float,
    ) -> None:
        self.name = name
        self.info = info
        self.lane = lane
        self.door = door
        self.cache = cache
        self.flights = Flights()
        self.foresight = Foresight()
        self._clock = clock
        self._bulk_yields = bulk_yields

    async def answer(self, exchange: Journey, items: Sequence[Input], terms: Terms) -> Answered:
        """All items' answers, or the first error among them; none is admitted unless all are.

        The exchange's parts from admission on are those of the item that was finished last.

        Raises:
            Rejected: not admitted.
            CallerLeft: after the items nobody else waits for were given up.
            TailraceError: what went wrong with an item.

        """
        if not terms.truncate and any(item.truncated for item in items):
            raise TooLong(f"The text is longer than the {self.info.max_tokens} tokens read.")
        self._tell(exchange)
        keys = [self._key(item) for item in items]
        with exchange.part("cache"):
            known = [self.cache.get(key) for key in keys]
            missing = [i for i, value in enumerate(known) if value is None]
            self.lane.events.emit(CacheLookup(self.door.name, not missing))
        works: list[Work] = []
        if missing:
            futures = self._enter(exchange, items, keys, missing, terms, works)
            exchange.stamps.close("admit", exchange.clock.now())
            values = await self._all(exchange, futures)
            for i, value in zip(missing, values, strict=True):
                known[i] = value
                if items[i].kind == POOLED:  # answers by token are too large to keep
                    self.cache.put(keys[i], value)
            self._last_of(exchange, works)
        answered = Answered(
            values=[value for value in known if value is not None],
            tokens=[int(item.cost) for item in items],
            truncated=[item.truncated for item in items],
            hits=len(items) - len(missing),
            batch_size=max((work.batch_size for work in works), default=0),
        )
        if exchange.account.traced:
            told = {INPUT_TOKENS: answered.tokens_total, BATCH_SIZE: answered.batch_size}
            exchange.account.about |= told
        return answered

    def _tell(self, exchange: Journey) -> None:
        exchange.account.through(self.door.name, self.lane.name, self.info.kind, self.name)

    def foresee(
        self, exchange: Journey, texts: Sequence[Hashable], characters: int, terms: Terms
    ) -> None:
        """Refuse, before its texts are read, what is going to be refused whatever they say.

        Texts that were here before pass: their answers may be known, or under way.

        Raises:
            Rejected: not admitted.

        """
        self._tell(exchange)
        if terms.deadline == inf or self.foresight.seen(texts):
            return
        tokens = self.foresight.tokens(characters)
        whole = self._work(Stamps(exchange.clock.now()), tokens, terms)
        whole.items = len(texts)
        view = self.lane.view(whole)
        try:
            self.door.admission.foresee(whole, view, DOUBT * view.service_s)
        except TailraceError as refusal:
            self._refused(exchange, refusal, view)
            raise

    def _refused(self, exchange: Journey, refusal: TailraceError, view: LaneView) -> None:
        """A refusal is told when to come back, and counted."""
        exchange.stamps.close("admit", exchange.clock.now())
        refusal.back_s = self.door.refuse(refusal, view)
        self.lane.events.emit(Refused(self.lane.name, self.door.name, refusal.code))

    def _key(self, item: Input) -> tuple[str, Hashable]:
        return (self.info.fingerprint, item.key)

    def _enter(
        self,
        exchange: Journey,
        items: Sequence[Input],
        keys: Sequence[Any],
        missing: Sequence[int],
        terms: Terms,
        works: list[Work],
    ) -> list[asyncio.Future[Any]]:
        """Verdict over all, then a seat for each: no other request comes in between."""
        now = exchange.clock.now()
        until = terms.deadline
        new = {keys[i]: i for i in missing if not self.flights.under_way(keys[i], until)}
        whole = self._work(Stamps(now), sum(items[i].cost for i in new.values()), terms)
        whole.items = len(new)
        view = self.lane.view(whole if new else None)
        try:
            self.lane.check_open()
            latest = self.door.admission.admit(whole, view) if new else inf
            if self.lane.waiting + len(new) > self.lane.waiting_max:
                raise LaneFull(f"This needs {len(new)} seats of {self.lane.waiting_max}.")
        except TailraceError as refusal:
            self._refused(exchange, refusal, view)
            raise
        futures: dict[int, asyncio.Future[Any]] = {}
        # The long ones first: neighbours in line are of like length, and runs are padded little.
        for i in sorted(missing, key=lambda i: -items[i].cost):

            def start(item: Input = items[i]) -> asyncio.Future[Any]:
                work = self._work(Stamps(exchange.clock.now()), item.cost, terms)
                work.payload = item.payload
                work.batch_key = item.kind
                works.append(work)
                return self.lane.submit(work, latest)

            futures[i] = self.flights.join(keys[i], until, start)
        return [futures[i] for i in missing]

    def _work(self, stamps: Stamps, cost: float, terms: Terms) -> Work:
        return Work(
            None,
            stamps,
            door=self.door.name,
            cost=cost,
            batch_key=POOLED,
            caller=terms.caller,
            yields=self._bulk_yields if terms.bulk else 0.0,
            deadline=terms.deadline,
        )

    async def _all(self, exchange: Journey, futures: Sequence[asyncio.Future[Any]]) -> list[Any]:
        """The results in order; the first error ends it and gives the rest up."""
        if len(futures) == 1:
            return [await exchange.unless_left(futures[0])]
        try:
            return await exchange.unless_left(asyncio.gather(*futures))
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _last_of(self, exchange: Journey, works: Sequence[Work]) -> None:
        """Take over the moments of the item that came last: they lead from admission to the answer."""
        if works:
            exchange.stamps.follow(max(works, key=lambda work: work.stamps.last).stamps)
        exchange.stamps.close("handover", exchange.clock.now())


class ThreadRuns:
    """A model's runs on the inference threads: the lane's `Runner`, and its `Deck`."""

    def __init__(self, infers: Mapping[str, Infer], threads: InferenceThreads) -> None:
        """`infers` by kind of items: all items of a run are of one."""
        self._infers = infers
        self._threads = threads

    async def __call__(self, batch: Sequence[Item], run: Run) -> Sequence[Any]:
        """One run on the thread that is free first."""
        return await self._threads.call(self._run, batch, run)

    def lay(self, batch: Sequence[Item], run: ReadyRun) -> asyncio.Future[Sequence[Any]]:
        """See `Deck`."""
        return self._threads.lay(self, run.claim, self._run, batch, run)

    def clear(self) -> None:
        """See `Deck`."""
        self._threads.clear(self)

    def _run(self, batch: Sequence[Item], run: Run) -> Sequence[Any]:
        run.mark("tokenize")
        answers = self._infers[batch[0].kind]([item.tokens for item in batch])
        run.mark("infer")
        made: list[FloatArray | Exception] = list(answers)
        # The usual batch is sound as a whole: one look at all of it.
        if not (isinstance(answers, np.ndarray) and np.isfinite(answers).all()):
            made = [answer if np.isfinite(answer).all() else BadOutput() for answer in answers]
        run.mark("post")
        return made
