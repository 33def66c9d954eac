"""Where covers come in: a lane that reads them, then a model elsewhere if there is one; and their counts.

The composition of everything in this package. Reading has threads of its own: searches do not wait for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from tailrace.apps.books.cover import vlm
from tailrace.apps.books.cover.match import Matched, ReadLine, match
from tailrace.apps.books.cover.reading import ALWAYS, INSTALL, Attempt, Reader, Reading, look
from tailrace.apps.books.cover.settings import CoverSettings
from tailrace.apps.books.turn.generator import Tokens
from tailrace.cache.memory import MemoryCache
from tailrace.core.errors import InputError, LaneFull, TailraceError
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Refused
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Work, unfolded
from tailrace.models.errors import ModelUnavailable
from tailrace.models.picture import FORMATS, as_jpeg
from tailrace.models.threads import InferenceThreads
from tailrace.models.upstream import Upstream
from tailrace.serve.chat import ServedChat
from tailrace.serve.doors import Door, Pipeline
from tailrace.serve.exchange import Exchange
from tailrace.serve.metrics import Metrics
from tailrace.serve.remote_offers import Surroundings, open_remote
from tailrace.serve.served import Terms
from tailrace.stores.port import Store

COVER = "cover"
HOPED_S = 0.5
"""What reading a cover is hoped to take before the first."""
HANGS_S = 60.0
"""A picture that is read for so much longer than it may be is taken to hang."""
ARRIVING_MAX = 8
"""Pictures on their way in, beyond those that have a seat; one more is refused unread."""

How = Literal["ocr", "vlm", "needs_input"]


class CoversUnavailable(TailraceError):
    """Covers cannot be read here."""

    code = "covers-unavailable"


@dataclass(slots=True)
class Found:
    """What became of a cover."""

    reading: Reading
    how: How = "needs_input"
    matched: Matched = field(init=False)
    said: tuple[ReadLine, ...] = ()
    """What the model elsewhere read."""
    tokens: Tokens = field(default_factory=Tokens)
    degraded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.matched = self.reading.matched


class CoverDesk:
    """The reader, where its parts are installed; the model elsewhere, where one is configured."""

    def __init__(self, settings: CoverSettings, around: Surroundings, store: Store) -> None:
        self.settings = settings
        self._clock = around.clock
        self._store = store
        self.reader, self.why_not = self._open_reader()
        self.chat: ServedChat | None = None
        self._upstream: Upstream | None = None
        if settings.vlm.url is not None:
            offer, self._upstream = open_remote(settings.vlm.offer(settings.vlm.url), around)
            assert isinstance(offer, ServedChat)
            self.chat = offer
        self._allowance = vlm.PerMinute(settings.vlm.per_minute)
        self._threads = InferenceThreads(settings.slots)
        self._attempts: set[Attempt] = set()
        self.held = 0
        """Pictures that are here or on their way in."""
        self.lane, self.door = self._open_lane(around)
        self._pipeline = Pipeline(MemoryCache(0), around.clock)

    def _open_reader(self) -> tuple[Reader | None, str]:
        """The reader, or why there is none."""
        if self.settings.ocr == "off":
            return None, "reading is switched off (`cover.ocr`)"
        try:
            return Reader(self.settings, self._clock), ""
        except ModelUnavailable as error:
            return None, str(error)

    def _open_lane(self, around: Surroundings) -> tuple[Lane, Door]:
        settings = self.settings
        seats = settings.door.seats(1000)
        lane = Lane(
            COVER,
            self._run,
            clock=around.clock,
            slots=settings.slots,
            service=ServiceTime(HOPED_S),
            events=around.events,
            waiting_max=seats + settings.slots,
            run_max_s=settings.read_s + HANGS_S,
            abandons=True,
        )
        return lane, Door(COVER, lane, settings.door.admission(), seats=seats)

    def check(self) -> None:
        """Raise CoversUnavailable, with what to install, where no cover can be read."""
        missing = [name for name in ALWAYS if find_spec(name) is None]
        if missing:
            raise CoversUnavailable(f"Not installed: {', '.join(missing)}. To install: {INSTALL}")
        if self.reader is None and self.chat is None:
            raise CoversUnavailable(
                f"Covers cannot be read here: {self.why_not}. To install: {INSTALL}; "
                "or name a model that sees in `cover.vlm.url`."
            )

    def about(self) -> dict[str, Any]:
        """What somebody who sends covers has to know: whether any are read, of which types and sizes."""
        try:
            self.check()
        except CoversUnavailable:
            return {"offered": False}
        most = self.settings.body_max_bytes
        return {"offered": True, "types": list(FORMATS), "body_max_bytes": most}

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Room for a picture, from its first byte to its answer.

        Raises:
            LaneFull: there is none; none of its bytes has been read.

        """
        if self.held >= self._places:
            refusal = LaneFull(f"{self.held} pictures are here or on their way.")
            refusal.back_s = self.door.refuse(refusal, self.lane.view())
            self.lane.events.emit(Refused(COVER, COVER, refusal.code))
            raise refusal
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1

    @property
    def _places(self) -> int:
        """Pictures held at once, at most."""
        seeing = self.settings.vlm
        elsewhere = seeing.seats + seeing.slots if self.chat else 0
        return ARRIVING_MAX + self.door.seats + self.lane.slots + elsewhere

    # -- one cover ------------------------------------------------------------------------------

    async def find(self, exchange: Exchange, data: bytes, media_type: str) -> Found:
        """The book of a cover, or that a person must say.

        Raises:
            InputError: the picture cannot be used.
            Rejected, QueueTimeout, ModelTimeout: no turn, or no answer in time.

        """
        found = Found(await self._read(exchange, data, media_type))
        if found.matched.books:
            found.how = "ocr"
        else:
            if self.reader is None and self.settings.ocr != "off":
                found.degraded.append("ocr-unavailable")
            if found.reading.trouble:
                found.degraded.append(found.reading.trouble)
            if self.chat is not None:
                await self._ask(exchange, found, self.chat)
        self._covers.labels(found.how).inc()
        return found

    async def _read(self, exchange: Exchange, data: bytes, media_type: str) -> Reading:
        exchange.account.through(COVER, COVER)
        work = Work(
            Attempt(data, media_type),
            exchange.stamps,
            door=COVER,
            caller=exchange.caller,
            deadline=exchange.deadline(),
        )
        with self.door.telling_when():
            made: Reading = await exchange.unless_left(self._pipeline.admit(self.door, work))
        exchange.stamps = unfolded(exchange.stamps, "infer", made.trail)
        return made

    async def _run(self, payloads: Sequence[Attempt], run: Run) -> Sequence[Reading | Exception]:
        """The lane's callable: one picture on a thread of its own; who gives it up ends it."""
        (attempt,) = payloads
        self._attempts.add(attempt)
        try:
            made = await self._threads.call(
                look, attempt, self.reader, self.settings.pixels_max, self._judge, self._clock
            )
        except InputError as error:
            return [error]
        finally:
            attempt.give_up()
            self._attempts.discard(attempt)
        run.mark("infer")
        return [made]

    def _judge(self, lines: Sequence[ReadLine]) -> Matched:
        return match(self._store, lines)

    async def _ask(self, exchange: Exchange, found: Found, chat: ServedChat) -> None:
        """Ask the model elsewhere; whatever goes wrong there leaves it to a person, and is said."""
        settings = self.settings.vlm
        if not self._allowance.take(self._clock.now()):
            found.degraded.append("vlm-capped")
            self._asked.labels("capped").inc()
            return
        jpeg = await self._threads.call(as_jpeg, found.reading.picture, settings.side_max)
        exchange.stamps.close("decode", self._clock.now())
        ends = min(exchange.deadline(), self._clock.now() + settings.total_s)
        terms = Terms(caller=exchange.caller, deadline=ends)
        try:
            body = vlm.asking(jpeg, settings)
            answer = (await chat.complete(exchange, body, terms, stream=False)).body
            found.tokens = vlm.cost(answer)
            self._count(found.tokens)
            found.said = vlm.said(answer)
        except TailraceError as error:
            found.degraded.append(error.code)
            self._asked.labels("failed").inc()
            return
        seen = await self._threads.call(self._judge, found.said)
        exchange.stamps.close("match", self._clock.now())
        if seen.books or seen.best > found.matched.best:
            found.matched = seen
        if seen.books:
            found.how = "vlm"
        self._asked.labels("matched" if seen.books else "no-match").inc()

    # -- counting -------------------------------------------------------------------------------

    def count(self, metrics: Metrics) -> None:
        """Tell how covers end from now on."""
        self._covers = metrics.counter("covers", "Covers by how their book was found", "found")
        self._asked = metrics.counter(
            "cover_vlm", "Covers left to the model elsewhere, by outcome", "outcome"
        )
        self._tokens = metrics.counter(
            "cover_vlm_tokens", "Tokens of the model that looks at covers, by kind", "kind"
        )
        for how in ("ocr", "vlm", "needs_input"):
            self._covers.labels(how)
        for outcome in ("matched", "no-match", "failed", "capped"):
            self._asked.labels(outcome)
        for kind in ("prompt", "completion", "reasoning"):
            self._tokens.labels(kind)

    def _count(self, tokens: Tokens) -> None:
        for kind in ("prompt", "completion", "reasoning"):
            self._tokens.labels(kind).inc(getattr(tokens, kind))

    # -- running --------------------------------------------------------------------------------

    @property
    def lanes(self) -> list[Lane]:
        """The reader's lane, and the model's where there is one."""
        return [self.lane, *([self.chat.served.lane] if self.chat else [])]

    @property
    def doors(self) -> list[Door]:
        """The same as doors."""
        return [self.door, *([self.chat.served.door] if self.chat else [])]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let go of threads, children and connections on leaving."""
        try:
            yield
        finally:
            if self._upstream is not None:
                await self._upstream.close()
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End every child that still reads, and the threads."""
        for attempt in list(self._attempts):
            attempt.give_up()
        self._threads.close()
