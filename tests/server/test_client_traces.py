"""Spans of the measuring side: a row's parts, and the server's span below the request that caused it."""

import subprocess
import sys
from pathlib import Path

import pytest

from apis import serving_tiny
from boxes import ENVIRON, serving
from collector import CLIENT, ERROR, SERVER, UNSET, Collector, collecting
from tailrace.wire.record import Row


def told(collector: Collector, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=90,
        env={**ENVIRON, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_probe_and_its_server_are_one_trace_and_the_spans_are_the_row():
    with collecting() as collector:
        with serving(tracing__endpoint=collector.url) as box:
            address = f"{box.url}/api/limited/predict"
            lines = told(collector, "probe", address, "--n", "3", "--json").splitlines()
        rows = [Row.from_line(line) for line in lines]
        sent = {span.trace: span for span in collector.wholes(CLIENT)}
        served = {span.trace: span for span in collector.wholes(SERVER) if span.trace in sent}
        assert len(rows) == len(sent) == len(served) == 4
        for row in rows:
            client = sent[row.detail["trace"]]
            server = served[client.trace]
            assert server.parent == client.id
            assert client.parent == ""
            assert client.service == "tailrace-client"
            assert client.ms == pytest.approx(row.wall_ms, abs=0.001)
            parts = {span.name: span for span in collector.parts(client)}
            shown = {name: part for name, part in row.parts.items() if part.ms >= 0}
            assert set(parts) == set(shown)
            for name, part in shown.items():
                assert parts[name].ms == pytest.approx(part.ms, abs=0.001)
                assert parts[name].about["tailrace.source"] == part.source
            below = sum(part.ms for part in row.parts.values() if part.ms < 0)
            assert client.about.get("tailrace.other.ms", 0.0) == pytest.approx(below)
            # One machine, one clock: the server's span lies within the client's.
            assert client.start_ns - 1e6 <= server.start_ns
            assert server.end_ns <= client.end_ns + 1e6


def test_a_bench_run_sends_spans_and_a_refusal_is_an_error_of_its_caller(tmp_path: Path):
    with collecting() as collector:
        with serving(seconds=0.3) as box:
            words = ["bench", "run", "burst", "--name", "x", "--target", f"{box.url}/api"]
            words += ["--set", "load.length=12req", "--set", "load.cold=0req"]
            subprocess.run(
                [sys.executable, "-m", "tailrace.cli.main", *words],
                capture_output=True,
                timeout=120,
                env={**ENVIRON, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                cwd=tmp_path,
                check=False,
            )
        sent = collector.wholes(CLIENT)
        assert sent
        outcomes = {span.about["tailrace.outcome"] for span in sent}
        assert {"ok", "refused"} <= outcomes
        for span in sent:
            refused = span.about["tailrace.outcome"] == "refused"
            assert span.status == (ERROR if refused else UNSET)
            assert not refused or span.about["error.type"] in {"429", "503"}


def test_an_embedding_probe_bears_the_names_of_the_conventions(tiny_embedder_folder: Path):
    with collecting() as collector, serving_tiny(tiny_embedder_folder) as api:
        address = f"{api.url}/v1/embeddings"
        told(collector, "probe", address, "--model", "tiny", "--n", "2", "--text", "abc secret")
        for span in collector.wholes(CLIENT):
            assert span.about["gen_ai.operation.name"] == "embeddings"
            assert span.about["gen_ai.usage.input_tokens"] > 0
            assert span.about["server.port"] == api.port
        assert "secret" not in str(collector.spans)
