"""The inference threads: spreading, nesting, errors, politeness, cancelled awaiters."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from tailrace.models.threads import NICE, NICEST, InferenceThreads


@pytest.fixture(params=[1, 2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[InferenceThreads]:
    threads = InferenceThreads(request.param)
    yield threads
    threads.close()


def test_spread_keeps_the_order(pool: InferenceThreads) -> None:
    assert pool.spread(lambda n: n * n, range(20)) == [n * n for n in range(20)]


def test_spread_of_nothing_is_nothing(pool: InferenceThreads) -> None:
    assert pool.spread(lambda n: n, []) == []


def test_spread_inside_spread_does_not_wait_for_itself(pool: InferenceThreads) -> None:
    def outer(n: int) -> int:
        return sum(pool.spread(lambda m: n * m, range(5)))

    assert pool.spread(outer, range(6)) == [10 * n for n in range(6)]


def test_the_first_error_is_raised_and_no_more_chunks_are_begun() -> None:
    pool = InferenceThreads(1)
    begun: list[int] = []

    def work(n: int) -> None:
        begun.append(n)
        if n == 2:
            raise ValueError("chunk 2")

    with pytest.raises(ValueError, match="chunk 2"):
        pool.spread(work, range(10))
    pool.close()
    assert begun == [0, 1, 2]


def test_two_chunks_run_at_the_same_time_on_two_threads() -> None:
    pool = InferenceThreads(2)
    both = threading.Barrier(2, timeout=10)
    assert len(pool.spread(lambda _: both.wait(), [0, 1])) == 2
    pool.close()


def test_the_threads_are_polite_and_the_caller_is_not_changed(pool: InferenceThreads) -> None:
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    (inside,) = pool.spread(
        lambda _: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), [0]
    )
    assert inside >= NICE
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has a class for it")
def test_threads_in_the_background_take_only_what_all_others_leave() -> None:
    pool = InferenceThreads(1, background=True)
    ((policy, niceness),) = pool.spread(
        lambda _: (
            os.sched_getscheduler(0),
            os.getpriority(os.PRIO_PROCESS, threading.get_native_id()),
        ),
        [0],
    )
    pool.close()
    assert (policy, niceness) == (os.SCHED_IDLE, NICEST)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_call_brings_the_answer_or_the_error_to_the_loop(pool: InferenceThreads) -> None:
    async def ask() -> tuple[int, str]:
        answer = await pool.call(pow, 2, 10)
        try:
            await pool.call(int, "no number")
        except ValueError as error:
            return answer, type(error).__name__
        return answer, "none"

    assert asyncio.run(ask()) == (1024, "ValueError")


def test_call_may_spread_over_the_threads_it_runs_on(pool: InferenceThreads) -> None:
    assert asyncio.run(pool.call(pool.spread, abs, [-1, -2, -3])) == [1, 2, 3]


def test_a_cancelled_awaiter_leaves_the_threads_working() -> None:
    pool = InferenceThreads(1)
    started, release, finished = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        release.wait(10)
        finished.set()
        return "unheard"

    async def ask() -> str:
        task = asyncio.create_task(pool.call(slow))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        return await pool.call(lambda: "still here")

    assert asyncio.run(ask()) == "still here"
    assert finished.is_set()
    pool.close()


def test_an_answer_for_a_loop_that_is_gone_is_dropped() -> None:
    pool = InferenceThreads(1)
    started, release = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        release.wait(10)

    async def leave() -> None:
        task = asyncio.create_task(pool.call(slow))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()

    asyncio.run(leave())
    release.set()
    assert pool.spread(abs, [-4]) == [4]
    pool.close()


def test_closed_threads_have_finished_their_work_and_take_no_more() -> None:
    pool = InferenceThreads(2)
    seen = pool.spread(lambda _: threading.current_thread(), range(8))
    pool.close()
    assert not any(thread.is_alive() for thread in seen)
    with pytest.raises(RuntimeError, match="closed"):
        pool.spread(abs, [1])


def test_a_thread_that_ends_its_work_takes_what_lies_ready_unless_it_was_taken_back() -> None:
    async def main() -> None:
        pool = InferenceThreads(1)
        go = threading.Event()
        order: list[str] = []

        def say(word: str) -> str:
            order.append(word)
            return word

        running = asyncio.ensure_future(pool.call(lambda: go.wait(10) and say("running")))
        await asyncio.sleep(0)
        pool.lay("here", lambda: True, say, "replaced")
        ready = pool.lay("here", lambda: True, say, "ready")
        pool.lay("there", lambda: False, say, "taken back")
        pool.lay("elsewhere", lambda: True, say, "cleared")
        pool.clear("elsewhere")
        go.set()
        assert await ready == "ready"
        assert await running
        assert order == ["running", "ready"]
        pool.close()

    asyncio.run(main())


def test_what_is_handed_in_comes_before_what_lies_ready() -> None:
    async def main() -> None:
        pool = InferenceThreads(1)
        go = threading.Event()
        order: list[int] = []
        running = asyncio.ensure_future(pool.call(go.wait, 10))
        handed = asyncio.ensure_future(pool.call(order.append, 1))
        await asyncio.sleep(0)
        ready = pool.lay("here", lambda: True, order.append, 2)
        go.set()
        await asyncio.gather(running, handed, ready)
        assert order == [1, 2]
        pool.close()

    asyncio.run(main())
