"""Shipped scenarios against servers like those that they are written for, and the generator's own cost."""

import asyncio
import json
import time
from contextlib import asynccontextmanager
from statistics import median

import httpx
import pytest
from typer.testing import CliRunner

from apis import Api
from tailrace.bench.overview import keep_overview
from tailrace.bench.scenario import read_scenario
from tailrace.bench.session import run_scenario
from tailrace.cli.main import app
from tailrace.latency.fixed_delay import fixed_delays
from tailrace.latency.measure import measure
from tailrace.latency.pool import Pool
from tailrace.latency.runs import open_run
from tailrace.latency.targets.plain import PlainUrl

pytestmark = pytest.mark.alone

THOUGHTS = 4


def silent(progress):
    del progress


@asynccontextmanager
async def chat(stubborn):
    """A chat that thinks aloud before it speaks unless told not to; a stubborn one thinks anyway."""

    async def serve(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                asked = json.loads(await reader.readexactly(size))
                thinks = stubborn or asked.get("reasoning_effort") not in {None, "none"}
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n")
                deltas = [{"reasoning_content": "hm "}] * (THOUGHTS * thinks)
                deltas += [{"content": "word "}] * 3
                for delta in deltas:
                    await asyncio.sleep(0.02)
                    await frame(writer, {"choices": [{"index": 0, "delta": delta}]})
                usage = {
                    "prompt_tokens": 5,
                    "completion_tokens": len(deltas),
                    "completion_tokens_details": {"reasoning_tokens": THOUGHTS * thinks},
                }
                await frame(writer, {"choices": [], "usage": usage})
                writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def frame(writer, body):
        data = b"data: " + json.dumps(body).encode() + b"\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await asyncio.sleep(0.02)


async def llm(root, stubborn):
    async with chat(stubborn) as url:
        changes = {"target.url": url, "load.length": "8req", "load.warm_up": "0%"}
        return await run_scenario(read_scenario("llm-reasoning", changes), root, silent)


def test_thinking_is_asked_for_and_counted(tmp_path):
    outcome = asyncio.run(llm(tmp_path, stubborn=False))
    off, low = (open_run(path) for path, _ in outcome.runs)
    assert {row.detail.get("reasoning_tokens", 0) for row in off.rows} == {0}
    assert {row.detail["reasoning_tokens"] for row in low.rows} == {THOUGHTS}
    assert low.summary.parts["think"].mean > 2 * 20
    assert "think" not in off.summary.parts or off.summary.parts["think"].mean < 1
    assert low.summary.total.p50 > off.summary.total.p50


def test_a_model_that_thinks_though_asked_not_to_is_told(tmp_path):
    outcome = asyncio.run(llm(tmp_path, stubborn=True))
    off = outcome.runs[0][1]
    assert any("still thought" in note for note in off.notes)


def test_a_staircase_is_shown_step_by_step(tmp_path):
    async def main():
        with fixed_delays([10]) as (url,):
            changes = {"target.url": url + "search?q={text}", "load.length": "3s"}
            return await run_scenario(read_scenario("search-staircase", changes), tmp_path, silent)

    outcome = asyncio.run(main())
    text = keep_overview(outcome).read_text()
    lines = [
        line.split("|")[1].strip() for line in text.split("step by step")[1].splitlines()[4:10]
    ]
    assert lines == ["1", "2", "4", "8", "16", "32"]
    ((path, _),) = outcome.runs
    assert len({row.prompt for row in open_run(path).rows}) > 50


@pytest.mark.model
def test_batches_and_clients_of_an_embedding_server(api: Api, tmp_path):
    words = ["bench", "run", "embed-grid", "--target", f"{api.url}/v1", "--root", str(tmp_path)]
    for change in ("load.length=1s", "target.batch=4"):
        words += ["--set", change]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in {0, 2}, done.output
    (session,) = tmp_path.iterdir()
    runs = [open_run(path.parent) for path in sorted(session.glob("*/rows.jsonl"))]
    assert [run.summary.load.concurrency for run in runs] == [1, 4, 8, 16]
    assert all(row.detail["batch_size"] == 4 for run in runs for row in run.rows)
    assert all((run.path / "report.html").exists() for run in runs)


def test_a_request_costs_the_generator_at_most_half_of_what_it_costs_httpx():
    """CPU time of this process, interleaved, on one server that takes its own time elsewhere in it."""

    async def ours(url, count):
        async with Pool(connections=1) as pool:
            await measure(pool, PlainUrl(url), 0)
            began = time.process_time()
            for number in range(count):
                await measure(pool, PlainUrl(url), number)
            return time.process_time() - began

    async def theirs(url, count):
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(url)
            began = time.process_time()
            for _ in range(count):
                await client.get(url)
            return time.process_time() - began

    async def main():
        with fixed_delays([0]) as (url,):
            return [await ours(url, 200) / await theirs(url, 200) for _ in range(5)]

    ratio = median(asyncio.run(main()))
    print(f"ours / httpx: {ratio:.2f}")
    assert ratio <= 0.5
