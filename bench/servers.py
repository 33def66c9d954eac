"""A tailrace server in a process of its own, watched from outside: its memory, its threads' CPU time."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load import Plan, Seen, ask

LOAD = Path(__file__).parent / "load.py"
EMBEDDER = {"name": "e5", "kind": "embedding"}
RERANKER = {"name": "reranker", "kind": "rerank", "pairs": "text-first"}


@dataclass(slots=True)
class Server:
    """A running server."""

    url: str
    pid: int
    ready_s: float
    """From the start of the process until it said that it is ready."""

    def rss_mib(self) -> float:
        """Resident memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def loop_cpu_s(self) -> float:
        """CPU time of the thread that the event loop runs on, so far."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9


@dataclass(slots=True)
class Loaded:
    """What a load saw."""

    took: float
    cpu_s: float
    seen: list[Seen]

    @property
    def answered(self) -> list[Seen]:
        """Those that got what they asked for."""
        return [seen for seen in self.seen if seen.status == 200]

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return len(self.answered) / self.took


@asynccontextmanager
async def running(verb: str, *arguments: str, **settings: Any) -> AsyncIterator[Server]:
    """A server on a free port; `settings` by their path with `__`, as JSON values."""
    environ = {f"TAILRACE__{name.upper()}": json.dumps(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "tailrace.cli.main", verb, "--port", "0", *arguments]
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )
    assert process.stderr is not None
    url = ""
    try:
        async with asyncio.timeout(180):
            while not url:
                line = (await process.stderr.readline()).decode()
                if not line:
                    raise SystemExit(f"tailrace {verb} did not start")
                if "ready http" in line:
                    url = line.split()[1]
        drain = asyncio.create_task(process.stderr.read())
        yield Server(url, process.pid, time.monotonic() - began)
        drain.cancel()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(60):
                    await process.wait()


def api(
    models: list[dict[str, Any]] | None = None, **settings: Any
) -> contextlib.AbstractAsyncContextManager[Server]:
    """`tailrace api` without a cache of answers."""
    offers = models or [EMBEDDER, RERANKER]
    return running("api", models=offers, cache__entries_max=0, **settings)


async def load(server: Server, **plan: Any) -> Loaded:
    """Let a load process of its own carry out a plan."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(LOAD), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate(ask(Plan(server.url, **plan)).encode())
    if process.returncode:
        raise SystemExit("the load generator failed")
    told: Mapping[str, Any] = json.loads(out)
    return Loaded(told["took"], told["cpu_s"], [Seen(*row) for row in told["seen"]])
