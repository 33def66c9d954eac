"""What happened, as Prometheus metrics: one listener on the events, and gauges read at scrape time.

Every series exists with the value zero from the start. The names are part of the product: dashboards
and alerts are checked against them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tailrace.core.events import (
    CacheLookup,
    ChildRestarted,
    Event,
    Refused,
    RunFinished,
    RunStarted,
    Settled,
    TicketMoved,
)
from tailrace.serve.account import Account

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)
OUTCOMES = (
    "done",
    "failed",
    "queue-timeout",
    "model-timeout",
    "left",
    "model-died",
    "model-restarting",
)
UNCOUNTED_MAX = 256
"""Events that wait to be counted, at most."""
PART_SECONDS = (
    *(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Parts are from microseconds to minutes long."""
PARTS_OF_A_LANE = (
    *("parse", "cache", "admit", "wait", "batch", "tokenize", "infer", "post"),
    *("handover", "serialize"),
)
"""The parts that exist from the start; others (of an upstream, of a search) appear with their first."""
REFUSALS = (
    "lane-full",
    "rate-limited",
    "deadline-infeasible",
    "memory-pressure",
    "upstream-paused",
    "draining",
)

Reading = Mapping[tuple[str, ...], float]
M = TypeVar("M", Counter, Histogram)


class _Gauges(Collector):
    """Gauges whose values are read when they are asked for: they cannot drift.

    Registered before all others, so that `first` is called before anything is read.
    """

    def __init__(self, first: Callable[[], None]) -> None:
        self._first = first
        self.readings: list[tuple[str, str, tuple[str, ...], Callable[[], Reading]]] = []

    def collect(self) -> Iterable[Metric]:
        self._first()
        for name, about, labels, read in self.readings:
            family = GaugeMetricFamily(name, about, labels=labels)
            for values, number in read().items():
                family.add_metric(values, number)
            yield family


class _Parts(Collector):
    """A histogram by door and part: ten looks at every request, so each is a search and two additions."""

    def __init__(self, name: str, about: str) -> None:
        self._name = name
        self._about = about
        self._seen: dict[tuple[str, str], list[float]] = {}
        """How many fell into each bucket, then the sum."""

    def of(self, door: str, part: str) -> list[float]:
        """One series, which exists from now on."""
        return self._seen.setdefault((door, part), [0.0] * (len(PART_SECONDS) + 2))

    def observe(self, door: str, part: str, seconds: float) -> None:
        """Count one part."""
        series = self.of(door, part)
        series[bisect_left(PART_SECONDS, seconds)] += 1.0
        series[-1] += seconds

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._about, labels=("door", "part"))
        for (door, part), series in self._seen.items():
            counts = accumulate(series[:-1])
            bounds = [*(str(bound) for bound in PART_SECONDS), "+Inf"]
            family.add_metric((door, part), list(zip(bounds, counts, strict=True)), series[-1])
        yield family


class Metrics:
    """The metrics of one app, all named `<app>_...`."""

    def __init__(self, app: str, doors: Iterable[str], tickets: Iterable[str] = ()) -> None:
        self.app = app
        self.registry = CollectorRegistry()
        self._series: dict[tuple[object, ...], Counter | Histogram] = {}
        self._uncounted: list[Event | tuple[str, dict[str, float]]] = []
        self._gauges = _Gauges(self.count)
        self.registry.register(self._gauges)
        self.refused = self.counter("refused", "Refused before any waiting", "door", "reason")
        self.answered = self.counter("answered", "Admitted work by its end", "door", "outcome")
        self.waited = self._histogram("waited_seconds", "Admitted to started on the model", "door")
        self.inference = self._histogram("inference_seconds", "Time on the model", "door")
        about = "Time by part, as Server-Timing names them"
        self.part = _Parts(f"{app}_part_seconds", about)
        self.registry.register(self.part)
        self.batch = Histogram(
            f"{app}_batch_size",
            "Pieces of work in one run",
            buckets=(1, 2, 3, 4, 5, 6, 7, 8, 16, 32),
            registry=self.registry,
        )
        self.runs = self.counter("runs", "Runs on the model", "result")
        self.cache = self.counter("cache", "Answers looked up in the cache", "door", "result")
        self.moved = self.counter("tickets_moved", "Tickets that entered a state", "state")
        self.restarts = self.counter("child_restarts", "Times the naive child was killed", "reason")
        self._zeroes(list(doors), list(tickets))

    def counter(self, name: str, about: str, *labels: str) -> Counter:
        """A counter `<app>_<name>`."""
        return Counter(f"{self.app}_{name}", about, labels, registry=self.registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(
            f"{self.app}_{name}", about, labels, buckets=SECONDS, registry=self.registry
        )

    def _zeroes(self, doors: list[str], tickets: list[str]) -> None:
        for door in doors:
            for reason in REFUSALS:
                self.refused.labels(door, reason)
            for outcome in OUTCOMES:
                self.answered.labels(door, outcome)
            for result in ("hit", "miss"):
                self.cache.labels(door, result)
            self.waited.labels(door)
            self.inference.labels(door)
            for part in PARTS_OF_A_LANE:
                self.part.of(door, part)
        for result in ("done", "failed"):
            self.runs.labels(result)
        for state in tickets:
            self.moved.labels(state)
        for reason in ("limit", "kernel", "crash"):
            self.restarts.labels(reason)

    def gauge(
        self, name: str, about: str, labels: tuple[str, ...], read: Callable[[], Reading]
    ) -> None:
        """A gauge `<app>_<name>`: `read` gives a number for each tuple of label values."""
        self._gauges.readings.append((f"{self.app}_{name}", about, labels, read))

    def __call__(self, event: Event) -> None:
        """Take in one event; it is counted with others, at once before anybody looks."""
        self._take(event)

    def ended(self, account: Account) -> None:
        """Take in the parts of a request that came through a door and is over."""
        if account.door and account.stamps is not None:
            self._take((account.door, account.stamps.parts()))

    def _take(self, one: Event | tuple[str, dict[str, float]]) -> None:
        self._uncounted.append(one)
        if len(self._uncounted) >= UNCOUNTED_MAX:
            self.count()

    def count(self) -> None:
        """Count what was taken in: many at a time, for that code is cold after every run of a model."""
        taken, self._uncounted = self._uncounted, []
        for one in taken:
            if isinstance(one, Event):
                self._count(one)
            else:
                door, parts = one
                for part, seconds in parts.items():
                    self.part.observe(door, part, seconds)

    def _count(self, event: Event) -> None:
        match event:
            case Settled(door=door):
                self._one(self.answered, door, event.outcome).inc()
                self._one(self.waited, door).observe(event.wait_s)
                if event.batch_size:
                    self._one(self.inference, door).observe(event.service_s)
            case CacheLookup(door=door, hit=hit):
                self._one(self.cache, door, "hit" if hit else "miss").inc()
            case Refused(door=door, reason=reason):
                self._one(self.refused, door, reason).inc()
            case RunStarted(doors=doors):
                self.batch.observe(len(doors))
            case RunFinished(failed=failed):
                self._one(self.runs, "failed" if failed else "done").inc()
            case TicketMoved(after=after):
                self._one(self.moved, after).inc()
            case ChildRestarted(reason=reason):
                self._one(self.restarts, reason).inc()

    def _one(self, family: M, *labels: str) -> M:
        """One series of a family; the library's own way there costs more than the counting itself."""
        key = (id(family), *labels)
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = family.labels(*labels)
        return cast("M", found)

    def expose(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)
