"""Builds the offers of models of this machine: weights, lane, door, readiness, on one budget of cores."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.core.batch import BatchRule
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import RunFinished
from tailrace.core.lane import Lane
from tailrace.core.slots import Slots
from tailrace.models.calibration import TOKENS_DEFAULT, kept
from tailrace.models.port import Progress
from tailrace.models.session_processes import SessionProcesses
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.catalogue import Offer
from tailrace.serve.doors import Door
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.local_settings import ModelOffer, ReadySettings
from tailrace.serve.opening import Model, Opened, Opening
from tailrace.serve.readiness import Readiness
from tailrace.serve.remote_offers import Surroundings
from tailrace.serve.served import POOLED, Infer, ServedModel, ThreadRuns


@dataclass(slots=True)
class LocalOffers:
    """Opens models one by one; all share the threads and the budget."""

    around: Surroundings
    threads: InferenceThreads
    cache_dir: Path | None
    ready: ReadySettings
    opening: Opening = field(default_factory=Opening)
    budget: Slots = field(init=False)
    lanes: list[Lane] = field(init=False, default_factory=list)
    readiness: list[Readiness] = field(init=False, default_factory=list)
    models: dict[str, Model] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """One slot for each thread."""
        self.budget = Slots(self.threads.count)

    def open(self, offer: ModelOffer, progress: Progress) -> Offer:
        """A model behind its lane.

        Raises:
            BadConfiguration: the offer asks for what the model has not.
            TailraceError: the model cannot be opened.

        """
        opened = self.opening.open(offer, self.threads, progress, self.cache_dir)
        self.models[offer.name] = opened.model
        return opened.offered(self._serve(offer, opened))

    def embedder(self, offer: ModelOffer, progress: Progress) -> ServedEmbedder:
        """An embedding model behind its lane; raises as `open`."""
        made = self.open(offer, progress)
        assert isinstance(made, ServedEmbedder)
        return made

    def hangs(self) -> bool:
        """Whether every slot is held by a run that is taken to hang."""
        ages = [age for lane in self.lanes for age in lane.runs_s()]
        return sum(age > self.ready.stuck_s for age in ages) >= self.budget.count

    def processes(self) -> dict[str, SessionProcesses]:
        """The processes of the models that run in some, by name."""
        return {
            name: model.session
            for name, model in self.models.items()
            if isinstance(model.session, SessionProcesses)
        }

    def close(self) -> None:
        """Let go of the weights, and end the processes."""
        for model in self.models.values():
            model.close()

    def _serve(self, offer: ModelOffer, opened: Opened) -> ServedModel:
        info, infers, samples = opened.model.info, opened.infers, opened.samples
        runs = offer.runs
        tokens_max = runs.tokens_max
        if tokens_max is None:
            known = kept(info.fingerprint, self.cache_dir)
            tokens_max = known.tokens_max if known else TOKENS_DEFAULT
        runs_on = ThreadRuns(infers, self.threads)
        lane = Lane(
            offer.name,
            runs_on,
            deck=runs_on,
            clock=self.around.clock,
            slots=self.threads.count,
            budget=self.budget,
            batch=BatchRule(runs.items_max, tokens_max, runs.window_ms / 1000, padded=True),
            service=_measured(infers[POOLED], samples),
            events=self.around.events,
            waiting_max=offer.door.seats(4096) + self.threads.count,
            run_max_s=runs.run_max_s,
            hangs=self.hangs,
        )
        self.lanes.append(lane)
        readiness = Readiness(
            lane,
            lambda: self.threads.call(infers[POOLED], samples[:1]),
            self.around.clock,
            recent_s=self.ready.recent_s,
            stuck_s=self.ready.stuck_s,
        )
        self.around.events.subscribe(readiness, RunFinished)
        self.readiness.append(readiness)
        door = Door(offer.name, lane, offer.door.admission(), seats=offer.door.seats(4096))
        return ServedModel(
            offer.name,
            info,
            lane,
            door,
            cache=self.around.cache,
            clock=self.around.clock,
            bulk_yields=self.around.bulk_yields,
        )


def _measured(infer: Infer, samples: list[Tokens]) -> ServiceTime:
    """How long runs take here, from a few of different sizes."""
    service = ServiceTime()
    for batch in (samples[:1], samples[1:], samples[1:] * 4, samples[:1], samples[1:]):
        began = time.monotonic()
        infer(batch)
        longest = max(len(tokens.ids) for tokens in batch)
        service.learn(float(longest * len(batch)), time.monotonic() - began)
    return service
