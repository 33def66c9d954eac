"""Model servers for the server tests: the real app on a real port, with a tiny model of random weights."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop

from tailrace.apps.api.app import api_app
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.serve.runner import bind
from tailrace.serve.settings import load

_numbers = itertools.count()
LETTERS = "abcdefghij"


def fresh(count: int = 1) -> list[str]:
    """Texts nobody has asked about before, in letters the tiny model knows."""
    return ["".join(LETTERS[int(digit)] for digit in f"{next(_numbers):06}") for _ in range(count)]


@dataclass
class ServedApi:
    """A model server that listens."""

    url: str
    server: ApiServer
    loop: asyncio.AbstractEventLoop
    errors: list[dict[str, Any]] = field(default_factory=list)
    """What the loop had to report: exceptions nobody took."""

    @property
    def lane(self) -> Any:
        return self.server.lanes[0]

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60.0, trust_env=False, verify=False, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        with self.client() as client:
            return client.get(path, **more)

    def embed(self, texts: str | list[str], **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as client:
            return client.post("/v1/embeddings", json={"input": texts}, headers=named)

    def metric(self, name: str, **labels: str) -> float:
        value = self.server.metrics.registry.get_sample_value(name, labels)
        return 0.0 if value is None else value

    def until(self, true: Callable[[], Any], patience_s: float = 20.0) -> None:
        ends = time.monotonic() + patience_s
        while not true():
            assert time.monotonic() < ends, "never came true"
            time.sleep(0.01)

    def quiet(self) -> None:
        """Wait until nothing is inside."""
        self.until(lambda: self.lane.waiting == self.lane.running == self.server.budget.taken == 0)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Every inference thread is busy with something else until the block ends."""
        release, busy = threading.Event(), threading.Semaphore(0)

        def hold() -> None:
            busy.release()
            release.wait(60)

        for _ in range(self.server.threads.count):
            asyncio.run_coroutine_threadsafe(self.server.threads.call(hold), self.loop)
        for _ in range(self.server.threads.count):
            assert busy.acquire(timeout=20)
        try:
            yield
        finally:
            release.set()


@contextlib.contextmanager
def serving_api(folder: Path, **more: Any) -> Iterator[ServedApi]:
    """A server on a free loopback port, in a thread. `more` are settings by dotted path with `__`."""
    offer: dict[str, Any] = {"name": "tiny", "kind": "embedding", "source": f"dir:{folder}"}
    offer |= more.pop("offer", {})
    overrides = {name.replace("__", "."): value for name, value in more.items()}
    settings = load(
        ApiSettings, environ={}, overrides={"models": [offer], "threads": 2, **overrides}
    )
    server = ApiServer(settings, lambda _, __: None)
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        api_app(server),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    listening = uvicorn.Server(config)
    started = threading.Event()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    served = ServedApi(url, server, None)  # type: ignore[arg-type]

    async def main() -> None:
        served.loop = asyncio.get_running_loop()
        served.loop.set_exception_handler(lambda _, context: served.errors.append(context))
        started.set()
        await listening.serve(sockets=[listener])

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=in_thread, name="api")
    thread.start()
    started.wait(10)
    try:
        served.until(lambda: listening.started)
        yield served
    finally:
        listening.should_exit = True
        thread.join(30)
        server.threads.close()
        assert not thread.is_alive()
        assert served.errors == []
