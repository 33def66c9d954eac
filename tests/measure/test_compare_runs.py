"""`tailrace compare` on kept runs, imported runs and files: what it says, its page, and its exit code."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from drawn import GENERATE_BEFORE, QUEUE_AFTER, row, rows
from tailrace.cli.main import app
from tailrace.latency.runs import Head, Load, RunWriter

DATA = Path(__file__).parent.parent / "data"


def keep(root, name, run, *, reasons=(), model="m"):
    head = Head(
        id=name,
        kind="bench",
        scenario="essay",
        target="http://127.0.0.1:1/",
        model=model,
        began=datetime(2026, 12, 1, tzinfo=UTC),
        best_before=date(2126, 12, 31),
    )
    with RunWriter(root / name, head, env={"cpu": "one", "cores": 2}) as writer:
        writer.append(*run)
        writer.finish(load=Load(kind="open-poisson", duration_s=9.0), reasons=reasons)
    return root / name


def call(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


def one_line(done):
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture
def before(tmp_path):
    return keep(tmp_path, "before", rows(250, GENERATE_BEFORE, 1, prompts=True))


@pytest.fixture
def after(tmp_path):
    return keep(tmp_path, "after", rows(250, QUEUE_AFTER, 2, prompts=True))


def test_two_folders_give_verdict_reason_and_pairs(before, after):
    done = call(before, after)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "moved from generate to net" in said
    assert "changes over 250 pairs of equal prompts" in said
    assert "not by its own change" in said


def test_worse_beyond_noise_is_exit_code_1_and_the_same_run_is_0(before, after):
    assert call(after, before).exit_code == 1
    done = call(before, before, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["turn"] == "same"
    assert found["verdict"]["kind"] == "stayed"
    assert all(part["change_ms"]["value"] == 0 for part in found["parts"].values())


def test_the_parts_of_the_json_add_up_to_the_mean(before, after):
    found = json.loads(call(before, after, "--json").stdout)
    for side in ("before", "after"):
        whole = sum(part[f"{side}_ms"] for part in found["parts"].values())
        assert whole == pytest.approx(found[side]["mean"]["ms"], abs=1e-3)
        assert sum(p[f"{side}_share"] for p in found["parts"].values()) == pytest.approx(1.0)


def test_the_page_needs_nothing_else_and_says_the_verdict_in_both_languages(
    before, after, tmp_path
):
    path = tmp_path / "compared.html"
    assert call(before, after, "--html", path, "--lang", "ko").exit_code == 0
    page = path.read_text(encoding="utf-8")
    assert page.startswith('<!doctype html><html lang="ko">')
    assert "moved from generate to net" in page
    assert "병목이 옮겨 갔습니다(generate → net)" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "cannot be written" in one_line(call(before, after, "--html", tmp_path))


def test_what_is_not_alike_is_said_beside_the_verdict(before, tmp_path):
    other = keep(tmp_path, "other", rows(100, QUEUE_AFTER, 2, prompts=True), model="n")
    said = call(before, other).stdout
    assert "model: m against n" in said
    assert "prompts: 250, 100 of them shared" in said


def test_a_tie_is_told_as_one(tmp_path):
    even = {"net": 200.0, "generate": 200.0}
    runs = [
        keep(tmp_path, f"run{seed}", rows(400, even, seed, spread={"net": 0.1, "generate": 0.1}))
        for seed in (1, 4)
    ]
    assert "tie: " in call(*runs).stdout


def brought_in(file, root):
    done = CliRunner().invoke(app, ["runs", "import", str(file), "--root", str(root)])
    assert done.exit_code == 0, done.output
    return next(root.iterdir())


@pytest.mark.parametrize("file", ["vllm.json", "guidellm.json", "aiperf.jsonl"])
def test_a_run_of_another_tool_is_compared_like_our_own(tmp_path, file):
    imported = brought_in(DATA / "imports" / file, tmp_path / "in")
    done = call(imported, imported, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["turn"] == "same"


def test_a_run_of_another_tool_that_is_not_valid_is_refused(before, tmp_path):
    imported = brought_in(DATA / "imports" / "k6.json", tmp_path / "in")
    assert "k6 dropped 3 iterations" in one_line(call(before, imported))


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([], "no rows"),
        ([row({"net": 1500.0}, outcome="timeout")] * 20, "cut off"),
        ([row({"blocked": 5.0, "waiting": 9.0})] * 30, "no part is told apart in both"),
        (rows(30, {"net": 9.0}, 1, spread=0.1), None),
        ([row({"net": 5.0}, prompt="other")] * 30, "no prompt in common"),
        ([row({"net": 5.0}, outcome="refused")] * 30, "no answered request"),
    ],
)
def test_folders_that_cannot_be_compared_are_one_line(before, tmp_path, second, said):
    done = call(before, keep(tmp_path, "second", second))
    if said is None:
        assert done.exit_code in {0, 1}, done.output
    else:
        assert said in one_line(done)


def test_one_row_decides_nothing_and_says_so(before, tmp_path):
    done = call(before, keep(tmp_path, "one", rows(1, QUEUE_AFTER, 5)))
    assert done.exit_code == 0, done.output
    assert "1 rows are too few to say which part leads" in done.stdout


@pytest.mark.parametrize("number", ["NaN", "Infinity", "null", '"7"'])
def test_what_is_no_number_is_no_row(before, tmp_path, number):
    file = tmp_path / "rows.jsonl"
    line = '{"wall_ms": NUMBER, "parts": {"net": {"ms": 1.0, "source": "measured"}}}\n'
    file.write_text(line.replace("NUMBER", number))
    assert "line 1 of" in one_line(call(before, file))


def test_damaged_newer_invalid_and_missing_folders_are_one_line(before, tmp_path):
    newer = keep(tmp_path, "newer", rows(20, QUEUE_AFTER, 3))
    body = orjson.loads((newer / "summary.json").read_bytes())
    (newer / "summary.json").write_bytes(orjson.dumps({**body, "schema": 99}))
    assert "newer tailrace" in one_line(call(before, newer))
    (newer / "summary.json").write_bytes(b'{"schema": 1')
    assert "no JSON" in one_line(call(before, newer))
    damaged = keep(tmp_path, "damaged", rows(20, QUEUE_AFTER, 3))
    lines = (damaged / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (damaged / "rows.jsonl").write_bytes(b"".join([lines[0], b"{\n", *lines[2:]]))
    assert "line 2 of" in one_line(call(before, damaged))
    invalid = keep(tmp_path, "invalid", rows(20, QUEUE_AFTER, 3), reasons=["the loop was late"])
    assert "the loop was late" in one_line(call(before, invalid))
    assert "there is no run at" in one_line(call(before, tmp_path / "nowhere"))
    assert "name one of them" in one_line(call(before, tmp_path))
