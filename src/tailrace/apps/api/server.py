"""The model server: several models, each behind a lane of its own, on one budget of cores.

The composition root of the app. Knows every part; decides nothing itself.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from tailrace.apps.api.remote import Surroundings, open_remote, tie
from tailrace.apps.api.remote_settings import RemoteOffer
from tailrace.apps.api.settings import ApiSettings, ModelOffer
from tailrace.cache.memory import MemoryCache
from tailrace.core.batch import BatchRule
from tailrace.core.clock import Clock, MonotonicClock
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Event, Events, RunFinished, Settled
from tailrace.core.lane import Lane
from tailrace.core.slots import Slots
from tailrace.models.cores import usable_cores
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.port import ModelInfo
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.models.upstream import Upstream
from tailrace.serve.catalogue import Catalogue, Offer
from tailrace.serve.dialect import Front, Limits
from tailrace.serve.doors import Door
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.keys import Keys
from tailrace.serve.metrics import Metrics
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import Infer, ServedModel, runner

FAILED_RUNS_UNREADY = 3
SAMPLES = ("친절해요", "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요")


class ApiServer:
    """Everything that runs, and what the dialects need of it."""

    def __init__(self, settings: ApiSettings, progress: Callable[[str, float], None]) -> None:
        self.settings = settings
        self.clock: Clock = MonotonicClock()
        self.events = Events()
        self.threads = InferenceThreads(settings.threads or usable_cores())
        self.budget = Slots(self.threads.count)
        self.metrics = Metrics("tailrace", [offer.name for offer in settings.models])
        self.lanes: list[Lane] = []
        self.upstreams: list[Upstream] = []
        self._remote = {offer.name for offer in settings.models if isinstance(offer, RemoteOffer)}
        self._failed_runs = 0
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
        )
        self._listen()

    def _open(
        self, offer: ModelOffer | RemoteOffer, progress: Callable[[str, float], None]
    ) -> Offer:
        if isinstance(offer, RemoteOffer):
            return self._open_remote(offer)
        place = self.settings.cache_dir
        if offer.kind == "embedding":
            embedder = open_embedder(
                offer.source, threads=self.threads, progress=progress, cache_dir=place
            )
            samples = [embedder.tokens(text) for text in SAMPLES]
            served = self._serve(offer, embedder.vectors, samples, embedder.info)
            return ServedEmbedder(served, embedder, self.threads)
        encoder = open_cross_encoder(
            offer.source, threads=self.threads, progress=progress, cache_dir=place
        )
        samples = [encoder.pair(text, "주차") for text in SAMPLES]
        served = self._serve(offer, encoder.logits, samples, encoder.info)
        text_first = offer.pairs == "text-first"
        return ServedReranker(served, encoder, self.threads, text_first=text_first)

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
        self, offer: ModelOffer, infer: Infer, samples: list[Tokens], info: ModelInfo
    ) -> ServedModel:
        runs = offer.runs
        lane = Lane(
            offer.name,
            runner(infer, self.threads),
            clock=self.clock,
            slots=self.threads.count,
            budget=self.budget,
            batch=BatchRule(runs.items_max, runs.tokens_max, runs.window_ms / 1000, padded=True),
            service=_measured(infer, samples),
            events=self.events,
            waiting_max=offer.door.seats(4096) + self.threads.count,
        )
        self.lanes.append(lane)
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
        match event:
            # An upstream that fails does not make this server unready: others may be fine.
            case RunFinished(lane=lane, failed=failed) if lane not in self._remote:
                self._failed_runs = self._failed_runs + 1 if failed else 0
            case Settled(door=door):
                offer = self.catalogue.names.get(door)
                if offer is not None:
                    offer.served.door.admission.observe(event)

    def ready(self) -> tuple[bool, str]:
        """Whether work is taken in and the models answer; else why not."""
        if any(lane.draining for lane in self.lanes):
            return False, "The server is shutting down."
        if self._failed_runs >= FAILED_RUNS_UNREADY:
            return False, f"The last {self._failed_runs} runs failed."
        return True, ""

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
