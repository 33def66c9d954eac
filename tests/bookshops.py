"""Book services for the tests: the real app on a real port, over a store of the test's own."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop

from boxes import parts_of
from tailrace.apps.books.app import books_app
from tailrace.apps.books.server import BooksServer
from tailrace.apps.books.settings import BooksSettings
from tailrace.models.open import silent
from tailrace.serve.runner import bind, served_by_uvicorn
from tailrace.serve.settings import load


@dataclass
class Shop:
    """A book service that listens."""

    url: str
    server: BooksServer
    loop: asyncio.AbstractEventLoop
    errors: list[dict[str, Any]] = field(default_factory=list)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60.0, trust_env=False, verify=False)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request; every answer must say how long it took, in parts that add up."""
        with self.client() as client:
            answer = client.request(method, path, **more)
        parts_of(answer.headers)
        return answer

    def search(self, q: str, **more: Any) -> dict[str, Any]:
        """The JSON of a search that must be answered."""
        answer = self.ask("GET", "/api/books/search", params={"q": q, **more})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def ids(self, q: str, **more: Any) -> list[str]:
        return [hit["id"] for hit in self.search(q, **more)["hits"]]

    def metric(self, name: str, **labels: str) -> float:
        value = self.server.metrics.registry.get_sample_value(name, labels)
        return 0.0 if value is None else value

    @contextlib.contextmanager
    def model_held(self) -> Iterator[None]:
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


BARE = {"llm.source": "off"}
"""Settings of a shop that says nothing else: whatever is installed here, no language model starts."""


@contextlib.contextmanager
def serving_books(file: Path, **more: Any) -> Iterator[Shop]:
    """A book service over `file` on a free port, in a thread. `more` are settings by path with `__`."""
    overrides = {name.replace("__", "."): value for name, value in more.items()}
    settings = load(
        BooksSettings, environ={}, overrides=BARE | {"store.path": str(file)} | overrides
    )
    server = BooksServer(settings, silent)
    listener = bind("127.0.0.1", 0)
    config = served_by_uvicorn(books_app(server), 5)
    running = uvicorn.Server(config)
    started = threading.Event()
    shop = Shop(f"http://127.0.0.1:{listener.getsockname()[1]}", server, None)  # type: ignore[arg-type]

    async def main() -> None:
        shop.loop = asyncio.get_running_loop()
        shop.loop.set_exception_handler(lambda _, context: shop.errors.append(context))
        started.set()
        await running.serve(sockets=[listener])

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=in_thread, name="books")
    thread.start()
    started.wait(10)
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield shop
    finally:
        running.should_exit = True
        thread.join(30)
        server.threads.close()
        assert not thread.is_alive()
        assert shop.errors == []
