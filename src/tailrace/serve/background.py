"""Many texts through an embedding model, behind everything else that is asked of it.

The texts are cut into sorted runs of some hundred tokens, each a piece of work of a lane of its own. Its
runs are on threads that the system stops whenever anybody else has something to do: so a query does not
wait for a document's run to end, and where nothing else is asked the documents have the machine.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from tailrace.core.admission import AllOf
from tailrace.core.clock import Clock
from tailrace.core.errors import LaneFull, TailraceError
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Events, Refused
from tailrace.core.lane import Lane
from tailrace.core.work import Run, Stamps, Work
from tailrace.models.chunks import plan_chunks
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import BadOutput
from tailrace.models.port import FloatArray
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import Tokens
from tailrace.serve.doors import Door

RUNS_WAITING_MAX = 1024
"""Runs in the background that may wait."""


class BackgroundEmbedder:
    """One model in the background, `slots` runs at once."""

    def __init__(
        self,
        name: str,
        model: OnnxEmbedder,
        *,
        slots: int,
        run_tokens: int,
        clock: Clock,
        events: Events,
    ) -> None:
        self.model = model
        self.threads = InferenceThreads(slots, background=True)
        self.lane = Lane(
            name,
            self._run,
            clock=clock,
            slots=slots,
            service=ServiceTime(),
            events=events,
            waiting_max=RUNS_WAITING_MAX,
        )
        self.door = Door(name, self.lane, AllOf(), seats=RUNS_WAITING_MAX)
        self._run_tokens = run_tokens
        self._clock = clock

    async def embed(self, texts: Sequence[str], *, prompt: str | None = None) -> FloatArray:
        """One unit vector per text, in order.

        Raises:
            Rejected: not admitted; nothing was computed.
            TailraceError: what went wrong with one of the texts.

        """
        batch, chunks = await self.threads.call(self._planned, texts, prompt)
        futures = self._enter([[batch[index] for index in chunk] for chunk in chunks])
        try:
            parts: list[FloatArray] = await asyncio.gather(*futures)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
        for chunk, part in zip(chunks, parts, strict=True):
            vectors[chunk] = part
        return vectors

    def _planned(
        self, texts: Sequence[str], prompt: str | None
    ) -> tuple[list[Tokens], list[list[int]]]:
        """What the model reads, and how it is cut into runs."""
        batch = [self.model.tokens(text, prompt=prompt) for text in texts]
        lengths = [len(tokens.ids) for tokens in batch]
        return batch, plan_chunks(lengths, self._run_tokens, self.threads.count)

    def _enter(self, runs: Sequence[list[Tokens]]) -> list[asyncio.Future[FloatArray]]:
        """A seat for every run, or for none."""
        try:
            self.lane.check_open()
            if self.lane.waiting + len(runs) > RUNS_WAITING_MAX:
                raise LaneFull(f"This needs {len(runs)} seats of {RUNS_WAITING_MAX}.")
        except TailraceError as refusal:
            refusal.back_s = self.door.refuse(refusal, self.lane.view())
            self.lane.events.emit(Refused(self.lane.name, self.door.name, refusal.code))
            raise
        now = self._clock.now()
        return [
            self.lane.submit(
                Work(
                    run,
                    Stamps(now),
                    door=self.door.name,
                    cost=float(len(run) * max(len(tokens.ids) for tokens in run)),
                )
            )
            for run in runs
        ]

    async def _run(self, payloads: Sequence[list[Tokens]], run: Run) -> list[FloatArray]:
        return [await self.threads.call(self._infer, payload, run) for payload in payloads]

    def _infer(self, batch: list[Tokens], run: Run) -> FloatArray:
        vectors = self.model.unit_vectors(batch)
        run.mark("infer")
        if not np.isfinite(vectors).all():
            raise BadOutput
        return vectors

    def close(self) -> None:
        """Stop the threads."""
        self.threads.close()
