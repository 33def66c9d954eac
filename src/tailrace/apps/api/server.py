"""The model server: several models, each behind a lane of its own, on one budget of cores.

The composition root of the app. Knows every part; decides nothing itself.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from tailrace.apps.api.settings import ApiSettings, ModelOffer
from tailrace.cache.memory import MemoryCache
from tailrace.core.batch import BatchRule
from tailrace.core.clock import Clock, MonotonicClock
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Event, Events, Settled
from tailrace.core.lane import Lane
from tailrace.core.slots import Slots
from tailrace.models.calibration import TOKENS_DEFAULT, kept
from tailrace.models.cores import usable_cores
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.port import ModelInfo
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.models.upstream import Upstream
from tailrace.serve.catalogue import Catalogue, Offer
from tailrace.serve.dialect import Front, Limits, Manners
from tailrace.serve.doors import Door
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.keys import Keys
from tailrace.serve.metrics import Metrics
from tailrace.serve.readiness import Readiness
from tailrace.serve.remote_offers import Surroundings, open_remote, tie
from tailrace.serve.remote_settings import RemoteOffer
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import PIECEWISE, POOLED, Infer, ServedModel, runner
from tailrace.serve.settings import BadConfiguration

SAMPLES = ("친절해요", "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요")


@dataclass(frozen=True, slots=True)
class Opening:
    """How the models of the offers are opened."""

    embedder: Callable[..., OnnxEmbedder] = open_embedder
    cross_encoder: Callable[..., OnnxCrossEncoder] = open_cross_encoder


class ApiServer:
    """Everything that runs, and what the dialects need of it."""

    def __init__(
        self,
        settings: ApiSettings,
        progress: Callable[[str, float], None],
        *,
        opening: Opening | None = None,
    ) -> None:
        self._opening = opening or Opening()
        self.settings = settings
        self.clock: Clock = MonotonicClock()
        self.events = Events()
        self.threads = InferenceThreads(settings.threads or usable_cores())
        self.budget = Slots(self.threads.count)
        self.metrics = Metrics("tailrace", [offer.name for offer in settings.models])
        self.lanes: list[Lane] = []
        self.readiness: list[Readiness] = []
        self.upstreams: list[Upstream] = []
        opened = [self._open(offer, progress) for offer in settings.models]
        aliases = [offer.aliases for offer in settings.models]
        tied = tie(list(settings.models), opened)
        self.catalogue = Catalogue.of(zip(tied, aliases, strict=True))
        limits = settings.limits
        self.front = Front(
            self.clock,
            self.catalogue,
            Keys.read(settings.keys.file),
            Limits(
                settings.server.body_max_bytes,
                limits.items_max,
                limits.text_max_chars,
                limits.bulk_items,
            ),
            Manners(
                settings.dialects.tei_validation_status,
                openai_errors_flat=settings.dialects.openai_errors == "flat",
            ),
            self.ready,
        )
        self._listen()

    def _open(
        self, offer: ModelOffer | RemoteOffer, progress: Callable[[str, float], None]
    ) -> Offer:
        if isinstance(offer, RemoteOffer):
            return self._open_remote(offer)
        place = self.settings.cache_dir
        if offer.kind == "embedding":
            embedder = self._opening.embedder(
                offer.source, threads=self.threads, progress=progress, cache_dir=place
            )
            if offer.default_prompt not in {None, *embedder.prompts}:
                known = ", ".join(embedder.prompts) or "none"
                why = f"{offer.name} knows no prompt {offer.default_prompt!r}; it knows: {known}"
                raise BadConfiguration([("models.default_prompt", why)])
            samples = [embedder.tokens(text) for text in SAMPLES]
            infers: dict[str, Infer] = {POOLED: embedder.vectors}
            if embedder.knows_tokens:
                infers[PIECEWISE] = embedder.token_vectors
            served = self._serve(offer, infers, samples, embedder.info)
            return ServedEmbedder(
                served, embedder, self.threads, default_prompt=offer.default_prompt
            )
        encoder = self._opening.cross_encoder(
            offer.source, threads=self.threads, progress=progress, cache_dir=place
        )
        samples = [encoder.pair(text, "주차") for text in SAMPLES]
        served = self._serve(offer, {POOLED: encoder.logits}, samples, encoder.info)
        return ServedReranker(
            served,
            encoder,
            self.threads,
            text_first=offer.pairs == "text-first",
            labels=offer.labels,
        )

    def _open_remote(self, offer: RemoteOffer) -> Offer:
        settings = self.settings
        around = Surroundings(
            self.clock,
            self.events,
            settings.cache.entries_max,
            settings.limits.bulk_yields_tokens,
        )
        made, upstream = open_remote(offer, around)
        self.upstreams.append(upstream)
        self.lanes.append(made.served.lane)
        return made

    def _serve(
        self,
        offer: ModelOffer,
        infers: Mapping[str, Infer],
        samples: list[Tokens],
        info: ModelInfo,
    ) -> ServedModel:
        runs = offer.runs
        tokens_max = runs.tokens_max
        if tokens_max is None:
            known = kept(info.fingerprint, self.settings.cache_dir)
            tokens_max = known.tokens_max if known else TOKENS_DEFAULT
        lane = Lane(
            offer.name,
            runner(infers, self.threads),
            clock=self.clock,
            slots=self.threads.count,
            budget=self.budget,
            batch=BatchRule(runs.items_max, tokens_max, runs.window_ms / 1000, padded=True),
            service=_measured(infers[POOLED], samples),
            events=self.events,
            waiting_max=offer.door.seats(4096) + self.threads.count,
        )
        self.lanes.append(lane)
        ready = self.settings.ready
        readiness = Readiness(
            lane,
            lambda: self.threads.call(infers[POOLED], samples[:1]),
            self.clock,
            recent_s=ready.recent_s,
            stuck_s=ready.stuck_s,
        )
        self.events.subscribe(readiness)
        self.readiness.append(readiness)
        door = Door(offer.name, lane, offer.door.admission(), seats=offer.door.seats(4096))
        return ServedModel(
            offer.name,
            info,
            lane,
            door,
            cache=MemoryCache(self.settings.cache.entries_max),
            clock=self.clock,
            bulk_yields=self.settings.limits.bulk_yields_tokens,
        )

    def _listen(self) -> None:
        self.events.subscribe(self.metrics)
        self.events.subscribe(self._notice)
        self.metrics.gauge("waiting", "Work that waits, by model", ("model",), self._read_waiting)
        self.metrics.gauge(
            "lane_slots",
            "Runs at once that a lane may have, by model",
            ("model",),
            self._read_slots,
        )
        self.metrics.gauge(
            "slots_taken", "Slots in use", (), lambda: {(): float(self.budget.taken)}
        )

    def _read_slots(self) -> dict[tuple[str, ...], float]:
        return {(lane.name,): float(lane.slots) for lane in self.lanes}

    def _read_waiting(self) -> dict[tuple[str, ...], float]:
        return {(lane.name,): float(lane.waiting) for lane in self.lanes}

    def _notice(self, event: Event) -> None:
        if isinstance(event, Settled):
            offer = self.catalogue.names.get(event.door)
            if offer is not None:
                offer.served.door.admission.observe(event)

    def ready(self) -> tuple[bool, str]:
        """Whether work is taken in and the models answer; else why not."""
        if any(lane.draining for lane in self.lanes):
            return False, "The server is shutting down."
        # An upstream that fails does not make this server unready: others may be fine.
        reasons = [why for readiness in self.readiness if (why := readiness.why_not())]
        return not reasons, " ".join(dict.fromkeys(reasons))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Nothing to start; on leaving, finish what was taken in."""
        try:
            yield
        finally:
            grace_s = self.settings.server.drain_grace_s
            await asyncio.gather(*(lane.drain(grace_s) for lane in self.lanes))
            await asyncio.gather(*(upstream.close() for upstream in self.upstreams))


def _measured(infer: Infer, samples: list[Tokens]) -> ServiceTime:
    """How long runs take here, from a few of different sizes."""
    service = ServiceTime()
    for batch in (samples[:1], samples[1:], samples[1:] * 4, samples[:1], samples[1:]):
        began = time.monotonic()
        infer(batch)
        longest = max(len(tokens.ids) for tokens in batch)
        service.learn(float(longest * len(batch)), time.monotonic() - began)
    return service
