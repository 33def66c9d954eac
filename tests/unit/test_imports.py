"""Other tools' results become runs whose rows add up; what those tools do not tell stays the residual."""

from pathlib import Path

import pytest

from tailrace.latency.imports import BadImport, recognise
from tailrace.latency.imports.keep import keep_imported
from tailrace.latency.runs import open_run
from tailrace.wire.record import IDENTITY_MS

GOLDEN = Path(__file__).parents[1] / "data" / "imports"
FILES = {
    "guidellm": "guidellm.json",
    "vllm": "vllm.json",
    "aiperf": "aiperf.jsonl",
    "k6": "k6.json",
}


def imported(tool):
    (found,) = recognise(GOLDEN / FILES[tool])
    assert found.tool == tool
    return found


def parts(row):
    return {name: round(part.ms, 3) for name, part in row.parts.items()}


@pytest.mark.parametrize("tool", FILES)
def test_every_row_adds_up_and_the_run_can_be_opened(tool, tmp_path):
    found = imported(tool)
    assert all(abs(row.miss_ms()) <= IDENTITY_MS for row in found.rows)
    folder, summary = keep_imported(found, tmp_path)
    run = open_run(folder)
    assert len(run.rows) == 12 + (tool == "guidellm")
    assert run.summary == summary
    assert run.summary.kind == "import"
    assert run.summary.parts["other"].sources == {"residual": summary.n}


def test_guidellm_tells_the_intended_start_and_the_thinking():
    found = imported("guidellm")
    assert parts(found.rows[0]) == {
        "sched": 2.0, "generate": 200.0, "transfer": 3.0, "other": 100.0
    }  # fmt: skip
    assert parts(found.rows[1])["think"] == 50.0
    assert found.rows[1].at_s == pytest.approx(1.0)
    assert found.rows[-1].outcome == "truncated"
    assert found.kind == "poisson"
    assert found.rows[0].detail == {"input_tokens": 20, "output_tokens": 8}


def test_vllm_tells_the_first_token_and_the_gaps():
    found = imported("vllm")
    assert parts(found.rows[3]) == {"generate": 100.0, "other": 130.0}
    assert found.rows[3].at_s == 1.5
    assert (found.model, found.offered_per_s) == ("some/model", 2.0)
    assert found.rows[-1].outcome == "error"


def test_aiperf_tells_units_and_phases():
    found = imported("aiperf")
    assert parts(found.rows[1]) == {
        "pool": 0.5, "connect": 2.0, "send": 0.1, "generate": 250.0, "other": 147.4
    }  # fmt: skip
    assert [found.rows[i].phase for i in (0, 1)] == ["warm-up", "steady"]
    assert found.rows[-1].outcome == "truncated"


def test_k6_holds_connecting_inside_blocked():
    found = imported("k6")
    assert parts(found.rows[0]) == {
        "pool": 1.0, "connect": 2.0, "tls": 3.0, "send": 0.5, "transfer": 0.5, "other": 29.0
    }  # fmt: skip
    assert found.rows[0].wall_ms == 36.0
    assert [found.rows[i].outcome for i in (5, 11)] == ["refused", "timeout"]
    assert found.target == "http://127.0.0.1:8000/api"
    assert found.began.hour == 18  # the day before: the file's zone is nine hours ahead
    assert "dropped 3 iterations" in found.reasons[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("not json", "is no JSON"),
        ("[1]", "no object"),
        ("{}", "no tool that is known"),
        ('{"benchmarks": [{"requests": {}}]}', "no requests"),
        ('{"request_throughput": 1, "mean_ttft_ms": 3}', "--save-detailed"),
        ('{"root_group": {}}', "--out json"),
        ('{"aiperf_version": "0.13"}', "profile_export.jsonl"),
        ('{"metadata": {}, "metrics": {}}', "tells how long"),
        ('{"type": "Metric", "metric": "vus"}', "no whole HTTP request"),
        ('{"type": "Point", "metric": "vus"}\n{"ty', "line 2 of .* cut off"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(BadImport, match=said) as bad:
        recognise(path)
    assert "\n" not in str(bad.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(BadImport, match="cannot be read"):
        recognise(tmp_path / "none")
