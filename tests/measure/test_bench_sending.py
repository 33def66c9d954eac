"""The generator against servers that stall, refuse, hang up and keep their time."""

import asyncio
import os
import signal
import sys
import time
from contextlib import asynccontextmanager

import pytest

from boxes import SOURCE
from tailrace.bench.errors import BadScenario, NoAnswer
from tailrace.bench.scenario import read_scenario
from tailrace.bench.session import STOPPED, run_scenario
from tailrace.latency.fixed_delay import fixed_delays
from tailrace.latency.runs import open_run
from tailrace.latency.self_test import self_test
from tailrace.wire.record import IDENTITY_MS

pytestmark = pytest.mark.alone

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(answer):
    """A server whose `answer` is awaited for every request and gives the bytes that go out, or None."""
    inside = set()

    async def serve(reader, writer):
        inside.add(asyncio.current_task())
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                found = await answer()
                if found is None:
                    break
                writer.write(found)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            inside.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        for task in tuple(inside):
            task.cancel()
        await asyncio.sleep(0.01)


def asked(url, **more):
    changes = {
        "target.protocol": "plain",
        "target.url": url,
        "load.rate": 50.0,
        "load.length": "2s",
        "load.cold": "0req",
        "load.warm_up": "0%",
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return read_scenario("embed", changes)


async def carry_out(url, root, tell=lambda progress: None, **more):
    return await run_scenario(asked(url, **more), root, tell)


def only_run(outcome):
    ((path, _),) = outcome.runs
    return open_run(path)


def test_an_open_loop_never_waits_for_answers(tmp_path):
    """Forty requests are sent though the first is not answered before the last was sent."""
    together = 0
    most = 0

    async def main():
        async def slow():
            nonlocal together, most
            together += 1
            most = max(most, together)
            await asyncio.sleep(3)
            together -= 1
            return OK

        async with serving(slow) as url:
            return await carry_out(url, tmp_path, load__length="1s", load__rate=40.0)

    run = only_run(asyncio.run(main()))
    assert most == len(run.rows) > 25
    assert run.summary.load.offered_per_s == pytest.approx(run.summary.load.achieved_per_s)


def test_a_stall_shows_in_the_times_from_the_intended_start(tmp_path):
    """One second in which nobody is answered: who came at its beginning waited long, who came late less."""

    async def main():
        began = None

        async def stalling():
            nonlocal began
            began = began or time.monotonic()
            now = time.monotonic() - began
            if 0.5 <= now < 1.5:
                await asyncio.sleep(1.5 - now)
            return OK

        async with serving(stalling) as url:
            return await carry_out(url, tmp_path, load__kind="constant", load__length="2s")

    run = only_run(asyncio.run(main()))
    stalled = sorted((row for row in run.rows if row.wall_ms > 100), key=lambda row: row.at_s)
    assert len(stalled) > 0.3 * len(run.rows)
    first, last = stalled[0], stalled[-1]
    assert first.wall_ms > 4 * last.wall_ms
    for (
        row
    ) in stalled:  # all are answered at the same moment, counted from when they were meant to start
        assert row.at_s + row.wall_ms / 1000 == pytest.approx(
            first.at_s + first.wall_ms / 1000, abs=0.3
        )


def test_a_closed_loop_that_stalls_sends_less_and_says_that_it_is_closed(tmp_path):
    async def main():
        with fixed_delays([50]) as (url,):
            return await carry_out(url, tmp_path, load__kind="closed", load__clients=3)

    run = only_run(asyncio.run(main()))
    load = run.summary.load
    assert (load.kind, load.concurrency, load.offered_per_s) == ("closed", 3, None)
    assert load.in_flight == pytest.approx(3, rel=0.15)
    assert load.little_miss < 0.15


def test_think_time_leaves_fewer_on_their_way_than_there_are_clients(tmp_path):
    async def main():
        with fixed_delays([20]) as (url,):
            more = {"load__kind": "closed", "load__clients": 8, "load__think": "180ms"}
            return await carry_out(url, tmp_path, **more)

    load = only_run(asyncio.run(main())).summary.load
    assert load.think_s == pytest.approx(0.18)
    assert load.in_flight < 3


def test_every_row_adds_up(tmp_path):
    async def main():
        with fixed_delays([3]) as (url,):
            return await carry_out(url, tmp_path, load__rate=200.0)

    run = only_run(asyncio.run(main()))
    assert len(run.rows) > 200
    assert all(abs(row.miss_ms()) <= IDENTITY_MS for row in run.rows)


def test_who_is_not_waited_for_is_cut_off_and_not_a_time(tmp_path):
    async def main():
        with fixed_delays([1500]) as (url,):
            return await carry_out(url, tmp_path, load__length="1s", load__timeout="300ms")

    outcome = asyncio.run(main())
    ((_, summary),) = outcome.runs
    assert not summary.validity.valid
    assert summary.total is None
    assert summary.outcomes == {"timeout": sum(summary.outcomes.values())}


def test_refusals_are_counted_and_are_no_latencies(tmp_path):
    async def main():
        turn = 0

        async def every_other():
            nonlocal turn
            turn += 1
            return (
                OK
                if turn % 2
                else b"HTTP/1.1 429 No\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
            )

        async with serving(every_other) as url:
            return await carry_out(url, tmp_path)

    run = only_run(asyncio.run(main()))
    outcomes = run.summary.outcomes
    assert outcomes["refused"] == pytest.approx(outcomes["ok"], abs=1)
    assert run.summary.n == outcomes["ok"]


def test_a_flood_of_errors_ends_the_run_with_what_the_server_said(tmp_path):
    sent = 0

    async def main():
        async def refusing():
            nonlocal sent
            sent += 1
            return b"HTTP/1.1 401 No\r\ncontent-length: 7\r\n\r\nbad key"

        async with serving(refusing) as url:
            return await carry_out(url, tmp_path, load__length="60s")

    began = time.monotonic()
    outcome = asyncio.run(main())
    assert time.monotonic() - began < 30
    assert sent < 40
    ((_, summary),) = outcome.runs
    assert "bad key" in " ".join(summary.validity.reasons)
    assert not outcome.valid


def test_nobody_there_is_told_before_a_folder_is_made(tmp_path):
    with pytest.raises(NoAnswer, match="nobody answers"):
        asyncio.run(carry_out("http://127.0.0.1:9/", tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_another_machine_is_not_loaded_by_accident(tmp_path):
    with pytest.raises(BadScenario, match="--remote"):
        asyncio.run(carry_out("http://192.0.2.1/", tmp_path))


def test_servers_that_hang_up_are_rows(tmp_path):
    async def main():
        turn = 0

        async def moody():
            nonlocal turn
            turn += 1
            return OK if turn % 3 else None

        async with serving(moody) as url:
            return await carry_out(url, tmp_path, load__length="1s")

    run = only_run(asyncio.run(main()))
    assert run.summary.outcomes["ok"] > 0
    assert len(run.rows) == sum(run.summary.outcomes.values())


def test_who_is_stopped_keeps_what_was_measured(tmp_path):
    async def main():
        with fixed_delays([5]) as (url,):
            task = asyncio.create_task(carry_out(url, tmp_path, load__length="60s"))
            await asyncio.sleep(1.5)
            task.cancel()
            return await task

    outcome = asyncio.run(main())
    assert outcome.stopped
    run = only_run(outcome)
    assert len(run.rows) > 20
    assert run.summary.validity.reasons == (STOPPED,)


def test_ctrl_c_keeps_the_rows_and_writes_the_report(tmp_path):
    async def main():
        with fixed_delays([5]) as (url,):
            words = ["bench", "run", "embed", "--root", str(tmp_path), "--name", "mine"]
            changes = (
                f"target.url={url}",
                "target.protocol=plain",
                "load.length=60s",
                "load.warm_up=0%",
            )
            for change in changes:
                words += ["--set", change]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tailrace.cli.main", *words),
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            rows = tmp_path / "mine" / "rows.jsonl"
            while not rows.exists() or rows.read_bytes().count(b"\n") < 10:
                await asyncio.sleep(0.05)
                assert process.returncode is None
            process.send_signal(signal.SIGINT)
            told, _ = await process.communicate()
            return process.returncode, told.decode()

    code, told = asyncio.run(main())
    assert code == 130, told
    assert "Traceback" not in told
    run = open_run(tmp_path / "mine")
    assert len(run.rows) >= 10
    assert run.summary.validity.reasons == (STOPPED,)
    assert (tmp_path / "mine" / "report.html").exists()


def test_two_targets_take_turns_and_the_first_goes_twice(tmp_path):
    async def main():
        with fixed_delays([5, 30]) as (near, far):
            asked_twice = asked(near, rounds=2, load__length="600ms").model_copy(
                update={"against": {"B": {"url": far}}}
            )
            return await run_scenario(asked_twice, tmp_path, lambda progress: None)

    outcome = asyncio.run(main())
    a, b = (open_run(path) for path, _ in outcome.runs)
    assert {row.detail["block"] for row in a.rows} == {-1, 0, 1}
    assert {row.detail["block"] for row in b.rows} == {0, 1}
    assert outcome.aa_noise is not None
    assert b.summary.total.p50 > 2 * a.summary.total.p50
    # The blocks are interleaved in time, and ask the same in the same rhythm.
    assert max(r.at_s for r in a.rows if r.detail["block"] == 0) < min(r.at_s for r in b.rows)
    assert max(r.at_s for r in b.rows if r.detail["block"] == 0) < max(r.at_s for r in a.rows)
    turns = [sum(r.detail["block"] == 1 for r in run.rows) for run in (a, b)]
    assert turns[0] == turns[1]


def test_a_staircase_says_which_step_a_request_belongs_to(tmp_path):
    async def main():
        with fixed_delays([20]) as (url,):
            more = {"load__kind": "staircase", "load__steps": [1, 4]}
            return await carry_out(url, tmp_path, **more)

    run = only_run(asyncio.run(main()))
    steps = [row.detail["step"] for row in run.rows]
    assert 2 < steps.count(4.0) / steps.count(1.0) < 6


def test_the_generator_reads_fixed_delays_alike():
    """Whatever this machine's own cost of a request is, a delay must not change it by much."""
    none, short, _ = asyncio.run(self_test(rounds=30))
    assert none.off_ms >= 0
    assert abs(short.off_ms - none.off_ms) < short.delay_ms / 2
