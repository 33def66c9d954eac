"""Boxes for the server tests: the real app on a real port, with a model that only takes its time."""

import asyncio
import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop

import tailrace
from tailrace.apps.review.app import event_stream, review_app
from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.topics import load_topics
from tailrace.bench.crowd import Caller, fire
from tailrace.core.clock import MonotonicClock
from tailrace.core.estimate import ServiceTime
from tailrace.models.child import ChildModel
from tailrace.models.fake import FakeCrossEncoder
from tailrace.models.threads import InferenceThreads
from tailrace.serve.runner import bind, served_by_uvicorn
from tailrace.serve.settings import load
from tailrace.wire.headers import TOTAL, parse_server_timing

HERE = Path(__file__).parent / "server"
SOURCE = Path(tailrace.__file__).parents[1]
SERVICE_S = 0.06
CHILD_LIMIT = 85 << 20
"""The child is some 25 MiB and takes 10 more for each request: 4 at once fit, 12 do not."""
DOORS = {
    "naive": "/api/naive/predict",
    "limited": "/api/limited/predict",
    "batched": "/api/batched/predict",
    "queue": "/api/queue/jobs",
}
PATHS = os.pathsep.join([str(SOURCE), str(Path(__file__).parent)])
ENVIRON = {**os.environ, "PYTHONPATH": PATHS, "PYTHONUNBUFFERED": "1"}
POISON = "독이 든 글"

_numbers = itertools.count()


def fresh(count: int = 1, about: str = "review") -> list[str]:
    """Texts nobody has asked about before."""
    return [f"{about} number {next(_numbers)}, neither good nor bad" for _ in range(count)]


def make_box(
    settings: BoxSettings,
    model: FakeCrossEncoder,
    *,
    service_s: float = SERVICE_S,
    child_limit: int = CHILD_LIMIT,
) -> tuple[ReviewBox, InferenceThreads]:
    """A box as `open_box` makes it, of a fake model and a small naive child."""
    topics, threads = load_topics(None), InferenceThreads(1)
    cost = model.cost("x" * 40, topics.labels)
    child = None
    if settings.naive.enabled:
        command = [sys.executable, str(HERE / "naive_child.py")]
        child = ChildModel("naive", command, limit_bytes=child_limit)
    box = ReviewBox(
        settings,
        model,
        threads,
        topics,
        clock=MonotonicClock(),
        service=ServiceTime(service_s, cost),
        child=child,
    )
    if child is not None:
        child._events = box.events
    return box, threads


@dataclass
class Served:
    """A box that listens."""

    url: str
    box: ReviewBox
    model: FakeCrossEncoder
    loop: asyncio.AbstractEventLoop
    errors: list[dict[str, Any]] = field(default_factory=list)
    """What the loop had to report: exceptions nobody took."""

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60.0, trust_env=False, verify=False, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        with self.client() as client:
            return client.get(path, **more)

    def ask(self, door: str, text: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as client:
            return client.post(DOORS[door], json={"text": text}, headers=named)

    def stats(self) -> dict[str, Any]:
        return dict(self.get("/api/stats").json())

    def crowd(self, door: str, texts: list[str]) -> list[Caller]:
        """All at once; in order of their numbers, as they ended."""
        return crowd(self.url, door, texts)

    def until(
        self, true: Callable[[dict[str, Any]], Any], patience_s: float = 20.0
    ) -> dict[str, Any]:
        """The first picture of /api/stats of which something is true."""
        ends = time.monotonic() + patience_s
        while True:
            stats = self.stats()
            if true(stats):
                return stats
            if time.monotonic() > ends:
                raise AssertionError(f"never came true: {stats}")
            time.sleep(0.02)

    def quiet(self) -> dict[str, Any]:
        """Wait until nothing is inside and the child is there."""
        return self.until(is_quiet)


def is_quiet(stats: dict[str, Any]) -> bool:
    doors = stats["doors"].values()
    naive = stats["naive"]
    return (
        all(door["in_progress"] == door["waiting"] == 0 for door in doors)
        and stats["lane"]["running"] == stats["lane"]["waiting"] == 0
        and stats["tickets"]["queued"] == stats["tickets"]["running"] == 0
        and (naive is None or (naive["running"] == 0 and naive["state"] == "ready"))
    )


def crowd(url: str, door: str, texts: list[str]) -> list[Caller]:
    async def collect() -> list[Caller]:
        seen = {}
        async for caller in fire(f"{url}/api", door, texts, patience_s=60.0):
            seen[caller.i] = caller
        return [seen[i] for i in sorted(seen)]

    return asyncio.run(collect())


@contextlib.contextmanager
def serving(
    *, seconds: float = SERVICE_S, poison: tuple[str, ...] = (POISON,), **more: Any
) -> Iterator[Served]:
    """A box on a free loopback port, in a thread. `more` are settings by dotted path with `__`."""
    child_limit = more.pop("child_limit", CHILD_LIMIT)
    overrides = {name.replace("__", "."): value for name, value in more.items()}
    settings = load(BoxSettings, environ={}, overrides=overrides)
    model = FakeCrossEncoder(seconds=seconds, poison=poison)
    box, threads = make_box(settings, model, service_s=seconds or 0.01, child_limit=child_limit)
    stream = event_stream(box)
    listener = bind("127.0.0.1", 0)
    config = served_by_uvicorn(review_app(box, stream), 5)
    server = uvicorn.Server(config)
    started = threading.Event()
    served = Served(f"http://127.0.0.1:{listener.getsockname()[1]}", box, model, None)  # type: ignore[arg-type]

    async def main() -> None:
        served.loop = asyncio.get_running_loop()
        served.loop.set_exception_handler(lambda _, context: served.errors.append(context))
        started.set()
        await server.serve(sockets=[listener])

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    os.environ["PYTHONPATH"] = str(SOURCE)
    thread = threading.Thread(target=in_thread, name="box")
    thread.start()
    started.wait(10)
    try:
        while not server.started:
            time.sleep(0.01)
            assert thread.is_alive(), "the box did not start"
        if box.child is not None:
            served.quiet()
        yield served
    finally:
        served.loop.call_soon_threadsafe(stream.close)
        server.should_exit = True
        thread.join(30)
        threads.close()
        assert not thread.is_alive()
        assert served.errors == []


def parts_of(headers: Any) -> dict[str, float]:
    """The Server-Timing of an answer, after checking that its parts add up to its total."""
    timing = parse_server_timing(headers["server-timing"])
    total = timing.pop(TOTAL)
    assert timing, "a total without parts"
    assert abs(sum(timing.values()) - total) <= 0.05
    assert all(value >= 0.0 for value in timing.values())
    return timing


def problem_of(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem an answer is, after checking its form."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = dict(response.json())
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"].endswith(code)
    assert body["title"]
    assert body["detail"]
    parts_of(response.headers)
    return body
