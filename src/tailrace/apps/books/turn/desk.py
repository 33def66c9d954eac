"""Where turns begin: opens the language model of the settings behind its lane, and counts how turns end.

The composition of everything in this package; knows no HTTP.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tailrace.apps.books.turn.generator import Generator
from tailrace.apps.books.turn.routes import Asked, Turns
from tailrace.apps.books.turn.settings import LOCAL_DEFAULT, LlmSettings, TurnSettings
from tailrace.apps.books.turn.turn import Find, Means, Turn, TurnEnded
from tailrace.core.errors import Rejected
from tailrace.core.lane import Lane
from tailrace.models.cores import usable_cores
from tailrace.models.llamacpp import LocalLlm, find_weights, installed
from tailrace.models.upstream import Upstream
from tailrace.serve.chat import ServedChat
from tailrace.serve.metrics import Metrics
from tailrace.serve.remote_offers import Surroundings, open_remote
from tailrace.serve.served import Terms


class TurnDesk:
    """The language model, where there is one, and the turns made with it."""

    def __init__(
        self,
        llm: LlmSettings,
        turns: TurnSettings,
        around: Surroundings,
        find: Find,
        categories: Callable[[], Sequence[str]],
        *,
        body_max_bytes: int,
    ) -> None:
        self._settings = turns
        self._clock = around.clock
        self._local: LocalLlm | None = None
        self._upstream: Upstream | None = None
        self.chat: ServedChat | None = None
        self.model = ""
        """What the language model is called; empty where there is none."""
        self._open(llm, around)
        self._means = Means(
            find,
            Generator(self.chat, llm.manner()) if self.chat else None,
            turns.clocks,
            around.clock,
            categories,
            spec_by_model=llm.spec_by_model(),
            grounded=not llm.remote,
            ended=self._ended,
        )
        self.turns = Turns(
            self.begin, self.model, most=turns.in_flight_max, body_max_bytes=body_max_bytes
        )

    def _open(self, llm: LlmSettings, around: Surroundings) -> None:
        """Start or find the model. Raises ModelUnavailable where the settings name one that is not there."""
        source, url, model = llm.source, llm.source, llm.model
        if source == "auto":
            source = LOCAL_DEFAULT if installed(LOCAL_DEFAULT) else "off"
        if source == "off":
            return
        if not llm.remote:
            self._local = LocalLlm(
                find_weights(source), threads=llm.threads or max(1, usable_cores() // 2)
            )
            url, model = self._local.url, self._local.name
        try:
            offer, self._upstream = open_remote(llm.offer(url, model), around)
        except BaseException:
            self.close()
            raise
        assert isinstance(offer, ServedChat)
        self.chat, self.model = offer, model

    @property
    def lanes(self) -> list[Lane]:
        """The model's lane, where there is one."""
        return [self.chat.served.lane] if self.chat else []

    def about(self) -> dict[str, Any]:
        """What somebody who shows turns has to know: the model, its clocks, how many cards."""
        return {
            "model": self.model or None,
            "local": self._local is not None,
            "cards": self._settings.cards,
            "clocks": self._settings.clocks.model_dump(),
        }

    def begin(self, asked: Asked, caller: str) -> Turn:
        """A turn for this caller.

        Raises:
            Rejected: the model's line is full; a model that is down only costs the reasons.

        """
        terms = Terms(caller=caller)
        if self.chat is not None:
            try:
                self.chat.check(terms)
            except Rejected as refusal:
                if refusal.code == "lane-full":
                    raise
        return Turn(self._means, asked.messages, asked.count or self._settings.cards, terms)

    # -- counting -------------------------------------------------------------------------------

    def count(self, metrics: Metrics) -> None:
        """Tell how turns end from now on."""
        self._turns = metrics.counter("turns", "Recommendation turns by how they ended", "outcome")
        self._stages = metrics.counter(
            "turn_stages_broken", "Turns that broke, by the stage in which", "stage"
        )
        self._tokens = metrics.counter(
            "llm_tokens", "Tokens of the language model by kind, as far as known", "kind"
        )
        for outcome in ("done", "degraded", "error"):
            self._turns.labels(outcome)
        for stage in ("search", "input", "generation", "idle", "total"):
            self._stages.labels(stage)
        for kind in ("prompt", "completion", "reasoning"):
            self._tokens.labels(kind)

    def _ended(self, ended: TurnEnded) -> None:
        self._turns.labels(ended.outcome).inc()
        if ended.stage:
            self._stages.labels(ended.stage).inc()
        self._tokens.labels("prompt").inc(ended.tokens.prompt)
        self._tokens.labels("completion").inc(ended.tokens.completion)
        self._tokens.labels("reasoning").inc(ended.tokens.reasoning)

    # -- running --------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep a local model alive; on leaving, let go of it."""
        watching = asyncio.ensure_future(self._local.watch()) if self._local else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait({watching})
            if self._upstream is not None:
                await self._upstream.close()
            self.close()

    def close(self) -> None:
        """End a local model."""
        if self._local is not None:
            self._local.close()
