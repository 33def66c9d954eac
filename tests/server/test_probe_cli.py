"""`tailrace probe` as a person uses it: a table, rows as lines, one line for what is wrong."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxes import ENVIRON, Served
from tailrace.latency.self_test import TOLERANCE_MS
from tailrace.wire.record import CLIENT_PARTS, IDENTITY_MS, Row

KEY = "sk-do-not-tell-0123456789"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tailrace.cli.main", "probe", *words]


def probe(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        timeout=60,
        env={**ENVIRON, **environ},
        check=False,
    )


def rows_of(text: str) -> list[Row]:
    rows = [Row.from_line(line) for line in text.splitlines()]
    for row in rows:
        assert abs(row.miss_ms()) <= IDENTITY_MS
    return rows


def test_the_table_names_parts_sources_and_the_leader(box: Served) -> None:
    done = probe(f"{box.url}/api/limited/predict", "--n", "12")
    assert done.returncode == 0, done.stderr
    for word in (
        "infer",
        "declared",
        "measured",
        "residual",
        "in worst 5 %",
        "slowest 5 %",
        "total",
    ):
        assert word in done.stdout
    assert "12 requests: 12 ok; 1 before them kept apart (cold)" in done.stdout
    assert "infer leads" in done.stdout


def test_rows_are_json_lines_on_standard_output_and_in_the_file(
    box: Served, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    url = f"{box.url}/api/batched/predict"
    done = probe(
        url, "--n", "4", "--rate", "40", "--json", "--out", str(file), "--text", "하나뿐인 글"
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    assert [row.phase for row in rows] == ["cold"] + ["steady"] * 4
    assert file.read_text(encoding="utf-8") == done.stdout
    assert set(rows[0].parts) <= set(CLIENT_PARTS)
    assert rows[-1].detail["cache"] == "hit"
    assert "answers came out of the server's cache" in done.stderr
    assert {"wall_ms", "parts", "status"} <= json.loads(done.stdout.splitlines()[0]).keys()


def test_a_ticket_is_followed_to_its_result(box: Served) -> None:
    done = probe(
        f"{box.url}/api/queue/jobs", "--n", "1", "--text", "새 글", "--text", "또 새 글", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert all(row.detail["polls"] >= 1 for row in rows_of(done.stdout))


def test_distance_is_told_from_regions(box: Served) -> None:
    url = f"{box.url}/api/limited/predict"
    done = probe(url, "--n", "2", "--here", "seoul", "--there", "us-east-1")
    assert done.returncode == 0, done.stderr
    assert "less than light in fibre needs" in done.stdout


def test_ctrl_c_keeps_the_rows_measured_so_far(box: Served, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    words = command(f"{box.url}/api/limited/predict", "--n", "5000", "--out", str(file))
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRON
    ) as p:
        ends = time.monotonic() + 30
        while not file.exists() or file.read_bytes().count(b"\n") < 3:
            assert time.monotonic() < ends
            time.sleep(0.02)
        p.send_signal(signal.SIGINT)
        told, said = p.communicate(timeout=30)
    assert p.returncode == 130, said
    kept = rows_of(file.read_text(encoding="utf-8"))
    assert len(kept) >= 3
    assert f"{len(kept) - 1} requests" in told
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to measure"),
        (["ftp://a/b"], "does not start with http"),
        (["http://u:secret@h/"], "give a header instead"),
        (["http://127.0.0.1:1/v1"], "say which with --kind"),
        (["http://127.0.0.1:1/v1/embeddings"], "--model"),
        (["http://127.0.0.1:1/", "--kind", "soap"], "there is no kind soap"),
        (["http://127.0.0.1:1/", "--header", "nothing"], "is no header"),
        (["http://127.0.0.1:1/", "--header", "Authorization: Bearer secret"], "--key-env"),
        (["http://127.0.0.1:1/", "--key-env", "NOT_THERE_AT_ALL"], "has no NOT_THERE_AT_ALL"),
        (["http://127.0.0.1:1/", "--here", "atlantis"], "no cloud region"),
        (["http://127.0.0.1:1/", "--ca", "/not/there.pem"], "No such file"),
        (["http://127.0.0.1:1/", "--texts", "/not/there.txt"], "No such file"),
        (["http://127.0.0.1:1/", "--data", "@/not/there"], "No such file"),
        (["http://127.0.0.1:1/", "--out", "/not/there/rows"], "No such file"),
        (["http://127.0.0.1:1/x/predict", "--kind", "door-limited", "--batch", "3"], "one text"),
        (
            ["http://127.0.0.1:1/", "--kind", "openai-chat", "--model", "m", "--reasoning", "loud"],
            "loud",
        ),
        (["http://127.0.0.1:1/", "--n", "0"], "See: "),
        (["http://127.0.0.1:1/", "--n", "2"], "nobody answers at 127.0.0.1:1"),
        (["http://nowhere.invalid/", "--n", "1"], "no address for nowhere.invalid"),
        (
            ["http://127.0.0.1:1/v1/chat/completions", "--model", "m", "--provider", "me"],
            "no provider",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(words: list[str], said: str) -> None:
    done = probe(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr.strip().count("\n") == 0, done.stderr
    assert done.stdout == ""


def test_a_url_of_a_box_that_answers_something_else_is_said(box: Served) -> None:
    done = probe(f"{box.url}/api/nothing/predict", "--kind", "plain", "--n", "3")
    assert done.returncode == 2
    assert "3 of 3 requests got 404" in done.stderr
    assert "nothing is at this path" in done.stderr


def test_https_to_a_plain_port_is_said(box: Served) -> None:
    done = probe(f"https://127.0.0.1:{box.port}/", "--n", "1")
    assert done.returncode == 2
    assert "no secure connection" in done.stderr


def test_a_key_is_sent_and_told_nowhere(box: Served, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    url = f"{box.url}/api/limited/predict"
    for more in ([], ["--json"]):
        done = probe(url, "--n", "2", "--key-env", "MY_KEY", "--out", str(file), *more, MY_KEY=KEY)
        assert done.returncode == 0, done.stderr
        assert KEY not in done.stdout + done.stderr
        assert KEY not in file.read_text(encoding="utf-8")
    done = probe(f"{url}/none", "--kind", "plain", "--n", "1", "--key-env", "MY_KEY", MY_KEY=KEY)
    assert KEY not in done.stdout + done.stderr


def test_the_self_test_reads_true_or_says_that_the_machine_is_busy() -> None:
    done = probe("--self-test", "--json")
    none, short, long = (json.loads(line) for line in done.stdout.splitlines())
    assert [reading["delay_ms"] for reading in (none, short, long)] == [0, 5, 100]
    for reading in (none, short, long):
        assert reading["good"] == (abs(reading["off_ms"]) <= TOLERANCE_MS)
    good = none["good"] and short["good"] and long["good"]
    assert done.returncode == (0 if good else 2)
    assert ("too busy" in done.stderr) is not good
    # What the machine does besides is in both: the difference of two delays is read as it is.
    assert long["read_ms"] - short["read_ms"] == pytest.approx(95, rel=0.1)


@pytest.mark.parametrize(
    ("path", "words", "said"),
    [
        ("/nowhere-at-all", [], "got 404"),
        ("/v1/embeddings", ["--model", "m"], "nothing is at this path"),
        ("/api/limited/predict", ["--kind", "plain", "--method", "DELETE"], "--method"),
    ],
)
def test_answers_of_a_bad_status_are_one_line_that_says_what_to_do_next(
    box: Served, path: str, words: list[str], said: str
) -> None:
    done = probe(f"{box.url}{path}", "--n", "3", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "<" not in done.stderr
    assert done.stderr.strip().count("\n") == 0, done.stderr
    assert done.stdout == ""


def test_no_part_that_is_measured_is_shorter_than_nothing_at_a_rate(box: Served) -> None:
    url = f"{box.url}/api/limited/predict"
    done = probe(url, "--n", "300", "--rate", "303", "--json", "--text", "한 글")
    assert done.returncode == 0, done.stderr
    for row in rows_of(done.stdout):
        for name, part in row.parts.items():
            assert part.ms >= 0 or part.source == "residual", (name, part)
