"""The threads inference runs on: one per usable core, polite to the event loop, shared by all models.

Knows nothing of what runs on them.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from tailrace.models.cores import usable_cores

A = TypeVar("A")
R = TypeVar("R")

NICE = 10
"""Politeness of an inference thread: a busy model must not delay the event loop that says so."""

NICEST = 19
"""Politeness of a thread in the background, where the system has no class for such."""


class InferenceThreads:
    """A fixed set of daemon threads; one set is the CPU budget of the whole process.

    Threads in the `background` get what all others leave: the system stops them where anybody else has
    something to do.
    """

    def __init__(
        self, count: int | None = None, *, nice: int = NICE, background: bool = False
    ) -> None:
        self.count = count if count is not None else usable_cores()
        if self.count < 1:
            raise ValueError("inference needs at least one thread")
        self._nice = NICEST if background else nice
        self._background = background
        # The simple queue wakes a thread with one word to the kernel; a condition takes several.
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ready: dict[Hashable, tuple[Callable[[], bool], Callable[[], None]]] = {}
        self._entering = threading.Lock()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"tailrace-infer-{n}", daemon=True)
            for n in range(self.count)
        ]
        for thread in self._threads:
            thread.start()

    def spread(self, fn: Callable[[A], R], chunks: Sequence[A]) -> list[R]:
        """`[fn(chunk) for chunk in chunks]`, run on all the threads; the first error is raised.

        May be called from one of the threads: the caller works too, so it never waits for itself.
        """
        share = _Share(fn, chunks)
        inside = threading.current_thread() in self._threads
        helpers = min(len(chunks), self.count) - (1 if inside else 0)
        for _ in range(helpers):
            self._submit(share.work)
        if inside:
            share.work()
        return share.wait()

    async def call(self, fn: Callable[..., R], *args: Any) -> R:
        """Run `fn(*args)` on one of the threads and await it.

        When the awaiter is cancelled the call still runs to its end and its answer is dropped.
        """
        future, job = _promised(fn, args)
        self._submit(job)
        return await future

    def lay(
        self, place: Hashable, claim: Callable[[], bool], fn: Callable[..., R], *args: Any
    ) -> asyncio.Future[R]:
        """Have `fn(*args)` lie ready for the thread that ends its work next.

        That thread begins it without asking the event loop, where nothing was handed in meanwhile and
        `claim()` says yes. It replaces what lay at `place` before; of what is not begun the future
        never ends.
        """
        future, job = _promised(fn, args)
        self._ready[place] = (claim, job)
        return future

    def clear(self, place: Hashable) -> None:
        """Forget what lies ready at `place`."""
        self._ready.pop(place, None)

    def close(self) -> None:
        """Finish what was submitted, then stop and join the threads."""
        with self._entering:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _submit(self, job: Callable[[], None]) -> None:
        with self._entering:
            if self._closed:
                raise RuntimeError("the inference threads are closed")
            self._jobs.put(job)

    def _work(self) -> None:
        # Refused in some sandboxes; then inference is merely less polite.
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._nice)
            if self._background:
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while (job := self._next()) is not None:
            job()
            # The last job's texts and arrays must not live until the next job comes.
            del job

    def _next(self) -> Callable[[], None] | None:
        """What was handed in, else what lies ready, else wait for what will be handed in."""
        while self._ready and self._jobs.empty():
            with contextlib.suppress(KeyError):  # another thread was quicker
                _, (claim, job) = self._ready.popitem()
                if claim():
                    return job
        return self._jobs.get()


def _promised(
    fn: Callable[..., R], args: tuple[Any, ...]
) -> tuple[asyncio.Future[R], Callable[[], None]]:
    """A future of `fn(*args)` on the running loop, and the job that keeps it from any thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def job() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = fn(*args)
        except BaseException as caught:  # noqa: BLE001 - it travels to the awaiter
            error = caught
        # A loop that has closed meanwhile has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    return future, job


class _Share(Generic[A, R]):
    """Chunks that several threads take one by one until none is left or one has failed."""

    def __init__(self, fn: Callable[[A], R], chunks: Sequence[A]) -> None:
        self._fn = fn
        self._chunks = chunks
        self._results: dict[int, R] = {}
        self._next = 0
        self._running = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def work(self) -> None:
        """Take chunks until there are none."""
        while True:
            with self._changed:
                if self._over_locked():
                    return
                index = self._next
                self._next += 1
                self._running += 1
            result: R
            try:
                result = self._fn(self._chunks[index])
            except BaseException as caught:  # noqa: BLE001 - it travels to the caller of spread
                with self._changed:
                    self._error = self._error or caught
                    self._running -= 1
                    self._changed.notify_all()
                return
            with self._changed:
                self._results[index] = result
                self._running -= 1
                self._changed.notify_all()

    def wait(self) -> list[R]:
        """Block until every taken chunk is done; a helper that never got to start is not waited for."""
        with self._changed:
            while self._running or not self._over_locked():
                self._changed.wait()
            if self._error is not None:
                raise self._error
            return [self._results[index] for index in range(len(self._chunks))]

    def _over_locked(self) -> bool:
        return self._error is not None or self._next >= len(self._chunks)
