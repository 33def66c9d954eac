"""Model servers for the tests: the real app on a real port, over models that are opened once."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop

from boxes import parts_of
from tailrace.apps.api.app import api_app
from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import EMBEDDER, RERANKER, ApiSettings
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.folder import read_folder
from tailrace.models.onnx_session import OnnxSession
from tailrace.models.open import open_cross_encoder, open_embedder, silent
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import TextTokens, Tokens, load_tokenizer
from tailrace.serve.opening import Opening
from tailrace.serve.runner import bind, served_by_uvicorn
from tailrace.serve.settings import load

E5 = "multilingual-e5-small"
REVIEWS = "review-cross-encoder"
TOPICS = "review-topics"
LABELS = ("친절", "주차", "맛")
RUN_S = 0.05
"""How long a run of the slow model takes."""
LETTERS = "abcdefghij"

_numbers = itertools.count()


def fresh(count: int = 1) -> list[str]:
    """Texts nobody has asked about before, in letters the tiny model knows."""
    return ["".join(LETTERS[int(digit)] for digit in f"{next(_numbers):06}") for _ in range(count)]


class SlowSession(OnnxSession):
    """A session that takes its time over every run."""

    def run(self, batch: Sequence[Tokens], output: str) -> FloatArray:
        time.sleep(RUN_S)
        return super().run(batch, output)


def slow_embedder(folder: Path, threads: InferenceThreads) -> OnnxEmbedder:
    """The embedder of a folder, slowed down."""
    found = read_folder(folder)
    info = ModelInfo("slow", "test", "embedding", "slow", 0, "none", 90, True)
    tokens = TextTokens(load_tokenizer(found.tokenizer), info.max_tokens)
    prompts = found.description.prompts
    return OnnxEmbedder(info, SlowSession(found.onnx), tokens, threads, prompts=prompts)


@dataclass
class Api:
    """A model server that listens."""

    url: str
    server: ApiServer
    loop: asyncio.AbstractEventLoop
    errors: list[dict[str, Any]] = field(default_factory=list)
    """What the loop had to report: exceptions nobody took."""

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def lane(self) -> Any:
        return self.server.lanes[0]

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60.0, trust_env=False, verify=False, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """One POST; every answer must say how long it took, in parts that add up."""
        given = {"content": body} if isinstance(body, bytes) else {"json": body}
        with self.client() as client:
            answer = client.post(path, **given, **more)
        parts_of(answer.headers)
        return answer

    def get(self, path: str, **more: Any) -> httpx.Response:
        with self.client() as client:
            return client.get(path, **more)

    def ok(self, path: str, body: Any, **more: Any) -> Any:
        """The JSON of an answer that must be 200."""
        answer = self.post(path, body, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def embed(self, texts: str | list[str], **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post("/v1/embeddings", {"input": texts}, headers=named)

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
def serving_api(opening: Opening | None = None, **more: Any) -> Iterator[Api]:
    """A model server on a free loopback port, in a thread. `more` are settings by path with `__`."""
    overrides = {name.replace("__", "."): value for name, value in more.items()}
    server = ApiServer(load(ApiSettings, environ={}, overrides=overrides), silent, opening=opening)
    listener = bind("127.0.0.1", 0)
    config = served_by_uvicorn(api_app(server), 5)
    running = uvicorn.Server(config)
    started = threading.Event()
    api = Api(f"http://127.0.0.1:{listener.getsockname()[1]}", server, None)  # type: ignore[arg-type]

    async def main() -> None:
        api.loop = asyncio.get_running_loop()
        api.loop.set_exception_handler(lambda _, context: api.errors.append(context))
        started.set()
        await running.serve(sockets=[listener])

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=in_thread, name="api")
    thread.start()
    started.wait(10)
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield api
    finally:
        running.should_exit = True
        thread.join(30)
        server.threads.close()
        assert not thread.is_alive()
        assert api.errors == []


def serving_tiny(
    folder: Path, *, offer: dict[str, Any] | None = None, **more: Any
) -> contextlib.AbstractContextManager[Api]:
    """The same with the tiny embedder alone, on two threads; `offer` says more about it."""
    return serving_api(models=[tiny_offer(folder, **(offer or {}))], threads=2, **more)


def opened(embedder: OnnxEmbedder, cross_encoder: OnnxCrossEncoder) -> Opening:
    """Models that are open already, whatever the source says; a folder is opened as it is."""

    def embed(source: str, **more: Any) -> OnnxEmbedder:
        return embedder if source.startswith("package:") else open_embedder(source, **more)

    def cross(source: str, **more: Any) -> OnnxCrossEncoder:
        if source.startswith("package:"):
            return cross_encoder
        return open_cross_encoder(source, **more)

    return Opening(embed, cross)


def real_offers() -> list[dict[str, Any]]:
    """The default offers, and the second once more with labels, for those who classify."""
    embedder, reranker = (offer.model_dump(exclude_defaults=True) for offer in (EMBEDDER, RERANKER))
    return [embedder, reranker, {**reranker, "name": TOPICS, "aliases": (), "labels": LABELS}]


def tiny_offer(folder: Path, **more: Any) -> dict[str, Any]:
    """The tiny embedder on offer."""
    return {"name": "tiny", "kind": "embedding", "source": f"dir:{folder}", **more}
