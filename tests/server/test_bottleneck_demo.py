"""The places of the story: real servers on loopback, with a way of a certain length before them."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import httpx
import pytest

from boxes import ENVIRON
from tailrace.bench.bottleneck.places import ACTS, FAR, NEAR, Place
from tailrace.bench.bottleneck.server import PING, serving
from tailrace.bench.bottleneck.way import Way
from tailrace.cli.bottleneck import streamed
from tailrace.latency.beyond import beyond, way_ms
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.runs import open_run
from tailrace.latency.targets.chat import Chat
from tailrace.latency.targets.plain import PlainUrl
from tailrace.wire.record import Part, Row

pytestmark = pytest.mark.alone

QUICK = Place("quick", net_ms=60.0, slots=1, generate_ms=40.0, prefill_ms=10.0, tokens=4)
THINKS = Place("thinks", net_ms=20.0, slots=1, generate_ms=30.0, think_ms=90.0, prefill_ms=10.0)


async def rows(url, *, n=6, timeout_s=10.0, **extra):
    async with Pool() as pool:
        chat = Chat(url, ["hi"], "scripted", extra=extra)
        ping = PlainUrl(url.removesuffix("/v1") + PING)
        whole = way_ms([await measure(pool, ping, i) for i in range(4)])
        asked = [await measure(pool, chat, i, timeout_s=timeout_s) for i in range(n)]
    return whole, [beyond(row, whole) for row in asked]


def test_the_way_is_found_by_cheap_requests_and_becomes_net():
    with serving(QUICK) as url:
        whole, asked = asyncio.run(rows(url))
    assert 60.0 <= whole <= 80.0
    for row in asked:
        assert row.outcome == "ok"
        assert abs(row.miss_ms()) < 0.001
        assert row.parts["net"].ms == pytest.approx(whole)
        assert row.parts["net"].source == "estimated"
    assert median(abs(row.parts["other"].ms) for row in asked) < 0.3 * whole


def test_thinking_is_a_channel_of_its_own_and_can_be_switched_off():
    with serving(THINKS) as url:
        _, loud = asyncio.run(rows(url))
        _, still = asyncio.run(rows(url, reasoning_effort="none"))
    assert all(row.parts["think"].ms > 50 for row in loud)
    assert all(row.detail["reasoning_tokens"] > 0 for row in loud)
    assert all("think" not in row.parts for row in still)


def test_the_place_says_how_long_a_request_stood_in_its_line():
    async def both(url):
        async with Pool() as pool:
            chat = Chat(url, ["hi"], "scripted")
            return await asyncio.gather(*(measure(pool, chat, i) for i in range(2)))

    with serving(QUICK) as url:
        first, second = sorted(asyncio.run(both(url)), key=lambda row: row.wall_ms)
    assert first.parts["queue"].ms < 5
    assert second.parts["queue"].ms == pytest.approx(first.parts["generate"].ms, rel=0.6)


def test_a_caller_who_leaves_frees_the_slot():
    slow = Place("slow", net_ms=2.0, slots=1, generate_ms=3000.0)
    with serving(slow) as url:
        _, (cut,) = asyncio.run(rows(url, n=1, timeout_s=0.3))
        assert cut.outcome == "timeout"
        assert cut.wall_ms >= 300
        _, (again,) = asyncio.run(rows(url, n=1, timeout_s=0.5))
    assert "first_byte" not in again.parts
    assert again.parts.get("queue", Part(0.0, "declared")).ms < 100, "the slot was free"


def test_a_way_delays_both_directions_and_changes_nothing_else():
    sent = bytes(range(256)) * 4000

    async def main():
        async def echo(reader, writer):
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 16):
                    writer.write(data)
                writer.close()

        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        way = Way(server.sockets[0].getsockname()[1], 0.05)
        near = await loop.create_server(way.connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*near.sockets[0].getsockname())
        writer.write(b"x")
        began = time.monotonic()
        assert await reader.readexactly(1) == b"x"
        took = time.monotonic() - began
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        writer.close()
        await asyncio.sleep(0.3)  # the closing takes its way too
        server.close()
        near.close()
        return took

    assert asyncio.run(main()) >= 0.1


def test_a_way_to_nowhere_hangs_up():
    async def main():
        loop = asyncio.get_running_loop()
        taken = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
        port = taken.sockets[0].getsockname()[1]
        taken.close()
        await taken.wait_closed()
        near = await loop.create_server(Way(port, 0.001).connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*near.sockets[0].getsockname())
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        await asyncio.sleep(0.1)
        near.close()

    asyncio.run(main())


def test_a_caller_who_left_before_the_way_was_made_leaves_nothing_open():
    async def main():
        taken, gone = asyncio.Event(), asyncio.Event()

        async def wait(reader, writer):
            taken.set()
            await reader.read()
            gone.set()
            writer.close()

        server = await asyncio.start_server(wait, "127.0.0.1", 0)
        start = Way(server.sockets[0].getsockname()[1], 0.0).connection()
        start.connection_made(asyncio.Transport())
        start.connection_lost(None)  # before its way has reached the other end
        await asyncio.wait_for(taken.wait(), 5)
        await asyncio.wait_for(gone.wait(), 5)
        server.close()

    asyncio.run(main())


def test_what_is_no_chat_is_an_error_and_not_a_crash():
    with serving(NEAR) as url, httpx.Client(trust_env=False) as client:
        assert client.post(url + "/chat/completions", content=b"{").status_code == 400
        assert client.get(url + "/models").status_code == 404
        assert client.get(url.removesuffix("/v1") + PING).status_code == 200


def test_a_place_can_be_handed_to_a_process():
    assert Place.from_json(json.loads(json.dumps(FAR.to_json()))) == FAR
    assert {act.key for act in ACTS} == {"first", "later", "edge", "near"}


def test_stopped_by_hand_it_keeps_what_it_measured_and_leaves_no_server_behind(tmp_path):
    command = [sys.executable, "-m", "tailrace.cli.main", "demo", "bottleneck"]
    demo = subprocess.Popen(
        [*command, "--root", str(tmp_path)], env=ENVIRON, stderr=subprocess.PIPE
    )
    ends = time.monotonic() + 60
    while not any(path.read_bytes() for path in tmp_path.rglob("first/rows.jsonl")):
        assert demo.poll() is None, demo.stderr.read()
        assert time.monotonic() < ends
        time.sleep(0.1)
    children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
    assert len(children) == len(ACTS)
    demo.send_signal(signal.SIGINT)
    said = demo.communicate(timeout=30)[1].decode()
    assert demo.returncode == 130
    assert "Traceback" not in said
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    (folder,) = tmp_path.iterdir()
    run = open_run(folder / "first")
    assert run.rows
    assert not run.summary.validity.valid


def test_a_rest_that_is_too_short_for_the_way_stays_as_it_is():
    row = Row(10.0, {"net": Part(0.1, "measured"), "other": Part(9.9, "residual")}, 200)
    assert beyond(row, 300.0) is row
    assert beyond(row, 0.05) is row
    moved = beyond(row, 8.0)
    assert moved.parts["net"].ms == 8.0
    assert moved.parts["other"].ms == pytest.approx(2.0)
    assert abs(moved.miss_ms()) < 1e-9


@pytest.mark.parametrize("ends", ["in its tokens", "before a token", "in the moment of the limit"])
def test_a_stream_at_the_limit_keeps_every_part_of_its_time(ends: str) -> None:
    after = {
        "in its tokens": {"generate": 1100.0},
        "before a token": {"transfer": 1100.0},
        "in the moment of the limit": {"generate": 1099.0, "transfer": 0.5, "client": 0.5},
    }[ends]
    parts = {"net": 100.0, "infer": 300.0, **after}
    row = Row(1500.0, {n: Part(ms, "measured") for n, ms in parts.items()}, 200, "timeout")
    told = streamed(row)
    assert told.miss_ms() == pytest.approx(0.0, abs=1e-9)
    assert "prefill" in told.parts
    assert told.parts["generate"].ms >= 1099.0
