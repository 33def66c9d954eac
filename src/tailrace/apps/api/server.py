"""The model server: several models, each behind a lane of its own, on one budget of cores.

The composition root of the app. Knows every part; decides nothing itself.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tailrace.apps.api.settings import ApiSettings
from tailrace.core.clock import Clock, MonotonicClock
from tailrace.core.events import Event, Events, Settled
from tailrace.core.lane import Lane
from tailrace.models.cores import usable_cores
from tailrace.models.port import Progress
from tailrace.models.threads import InferenceThreads
from tailrace.models.upstream import Upstream
from tailrace.serve.catalogue import Catalogue, Offer
from tailrace.serve.dialect import Front, Limits, Manners
from tailrace.serve.keys import Keys
from tailrace.serve.local_offers import LocalOffers
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.metrics import Metrics
from tailrace.serve.opening import Opening
from tailrace.serve.remote_offers import Surroundings, open_remote, tie
from tailrace.serve.remote_settings import RemoteOffer
from tailrace.serve.tracer import open_tracer


class ApiServer:
    """Everything that runs, and what the dialects need of it."""

    def __init__(
        self,
        settings: ApiSettings,
        progress: Progress,
        *,
        opening: Opening | None = None,
    ) -> None:
        self.settings = settings
        self.clock: Clock = MonotonicClock()
        self.events = Events()
        self.threads = InferenceThreads(settings.threads or usable_cores())
        self.cache = settings.cache.cache(settings.cache_dir)
        self.local = LocalOffers(
            Surroundings(
                self.clock,
                self.events,
                self.cache,
                settings.limits.bulk_yields_tokens,
            ),
            self.threads,
            settings.cache_dir,
            settings.ready,
            opening or Opening(),
        )
        self.budget = self.local.budget
        self.metrics = Metrics("tailrace", [offer.name for offer in settings.models])
        self.tracer = open_tracer(settings.tracing.choice(), "tailrace-api", self.metrics)
        self.lanes: list[Lane] = []
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

    def _open(self, offer: ModelOffer | RemoteOffer, progress: Progress) -> Offer:
        if isinstance(offer, RemoteOffer):
            made, upstream = open_remote(offer, self.local.around)
            self.upstreams.append(upstream)
            self.lanes.append(made.served.lane)
            return made
        opened = self.local.open(offer, progress)
        self.lanes.append(opened.served.lane)
        return opened

    def _listen(self) -> None:
        self.events.subscribe(self.metrics)
        self.events.subscribe(self._notice, Settled)
        self.metrics.gauge("waiting", "Work that waits, by model", ("model",), self._read_waiting)
        self.metrics.gauge(
            "lane_slots",
            "Runs at once that a lane may have, by model",
            ("model",),
            self._read_slots,
        )
        self.metrics.gauge(
            "model_processes",
            "Processes that take runs, by model; none where it runs in threads",
            ("model",),
            self._read_processes,
        )
        self.metrics.gauge(
            "model_processes_ended",
            "Processes that ended by themselves and were started again, by model",
            ("model",),
            self._read_processes_ended,
        )
        self.metrics.gauge(
            "slots_taken", "Slots in use", (), lambda: {(): float(self.budget.taken)}
        )

    def _read_slots(self) -> dict[tuple[str, ...], float]:
        return {(lane.name,): float(lane.slots) for lane in self.lanes}

    def _read_waiting(self) -> dict[tuple[str, ...], float]:
        return {(lane.name,): float(lane.waiting) for lane in self.lanes}

    def _read_processes(self) -> dict[tuple[str, ...], float]:
        return {(name,): float(len(p.pids)) for name, p in self.local.processes().items()}

    def _read_processes_ended(self) -> dict[tuple[str, ...], float]:
        return {(name,): float(p.restarts) for name, p in self.local.processes().items()}

    def _notice(self, event: Event) -> None:
        if isinstance(event, Settled):
            offer = self.catalogue.names.get(event.door)
            if offer is not None:
                offer.served.door.admission.observe(event)

    async def drain(self) -> None:
        """Refuse new work and finish what was taken in; what takes longer than the grace is given up.

        The listener stays open meanwhile, so that whoever still comes is told, and not cut off.
        """
        grace_s = self.settings.server.drain_grace_s
        await asyncio.gather(*(lane.drain(grace_s) for lane in self.lanes))

    def ready(self) -> tuple[bool, str]:
        """Whether work is taken in and the models answer; else why not."""
        if any(lane.draining for lane in self.lanes):
            return False, "The server is shutting down."
        # An upstream that fails does not make this server unready: others may be fine.
        reasons = [why for readiness in self.local.readiness if (why := readiness.why_not())]
        return not reasons, " ".join(dict.fromkeys(reasons))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Nothing to start; on leaving, finish what was taken in."""
        try:
            yield
        finally:
            await self.drain()
            await asyncio.gather(*(upstream.close() for upstream in self.upstreams))
            self.local.close()
            self.cache.close()
            if self.tracer is not None:
                await self.tracer.close()
