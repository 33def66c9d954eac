"""`tailrace watch` as a person or cron uses it: rounds, exit codes, news, gauges, and being stopped."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from boxes import ENVIRON, Served

SECRET = "hook-do-not-tell-42"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tailrace.cli.main", "watch", *words]


def watch(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        timeout=90,
        env={**ENVIRON, **environ},
        cwd=folder,
        check=False,
    )


@contextmanager
def hook(status: int) -> Iterator[tuple[str, list[tuple[str | None, dict[str, object]]]]]:
    taken: list[tuple[str | None, dict[str, object]]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            taken.append((self.headers["authorization"], json.loads(body)))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{SECRET}", taken
        finally:
            server.shutdown()
            thread.join()


def test_rounds_are_events_and_runs_that_can_be_compared(box: Served, tmp_path: Path) -> None:
    url = f"{box.url}/api/limited/predict"
    gauges = tmp_path / "watch.prom"
    words = [url, "--every", "1s", "--times", "2", "--n", "20", "--name", "w", "--json"]
    done = watch(tmp_path, *words, "--metrics-file", str(gauges))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["kind"] for event in events] == ["measured"] * 2
    for event in events:
        assert event["n"] == 20
        assert event["total"]["p50"] > 0
        assert (tmp_path / "runs" / "w" / event["run"] / "rows.jsonl").exists()
    told = gauges.read_text(encoding="utf-8")
    for name in (
        "part_seconds",
        "part_share",
        "leader",
        "expired",
        "down",
        "last_run_timestamp_seconds",
    ):
        assert f"tailrace_watch_{name}{{" in told
    once = watch(tmp_path, url, "--once", "--n", "20", "--name", "w")
    assert once.returncode in {0, 1}, once.stderr
    assert "leads with" in once.stdout
    assert (once.returncode == 1) == ("expired" in once.stdout)
    other = watch(tmp_path, url, "--once", "--n", "21", "--name", "w")
    assert other.returncode == 2
    assert "another question" in other.stderr


@pytest.mark.parametrize("status", [204, 500])
def test_who_is_down_is_news_and_a_dead_webhook_stops_nothing(tmp_path: Path, status: int) -> None:
    with hook(status) as (address, taken):
        words = ["http://127.0.0.1:1/", "--n", "2", "--every", "1s", "--times", "2", "--name", "w"]
        names = ["--webhook-env", "HOOK", "--webhook-key-env", "HOOK_KEY"]
        done = watch(tmp_path, *words, *names, HOOK=address, HOOK_KEY=SECRET)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("down") == 2
    assert "nobody answers" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert len(taken) == (1 if status == 204 else 3)
    assert taken[0][0] == f"Bearer {SECRET}"
    assert taken[0][1]["kind"] == "down"
    assert ("did not take it" in done.stderr) == (status == 500)
    for file in (tmp_path / "runs").rglob("*"):
        assert not file.is_file() or SECRET not in file.read_text(encoding="utf-8")


def test_once_of_a_target_that_is_down_is_exit_code_2(tmp_path: Path) -> None:
    done = watch(tmp_path, "http://127.0.0.1:1/", "--once", "--n", "2")
    assert done.returncode == 2
    assert "nothing measured" in done.stdout


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -9)]
)
def test_whatever_ends_it_what_was_measured_is_kept(
    box: Served, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    url = f"{box.url}/api/limited/predict"
    words = [url, "--n", "20", "--name", "w", "--json"]
    with subprocess.Popen(
        command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRON,
        cwd=tmp_path,
    ) as p:
        assert p.stdout is not None
        first = json.loads(p.stdout.readline())
        time.sleep(0.1)
        p.send_signal(how)
        _, said = p.communicate(timeout=30)
    assert p.returncode == code, said
    assert "Traceback" not in said
    again = watch(tmp_path, *words, "--once")
    assert again.returncode in {0, 1}, again.stderr
    history = (tmp_path / "runs" / "w" / "history.jsonl").read_bytes().splitlines()
    assert json.loads(history[1])["run"] == first["run"]
    assert len(history) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://127.0.0.1:1/", "--every", "often"], "--every takes a time"),
        (["no-such-scenario"], "no-such-scenario"),
        (["http://127.0.0.1:1/", "--webhook", "ftp://u:secret@h/"], "the webhook's address"),
        (["http://127.0.0.1:1/", "--webhook-env", "NOT_THERE"], "no NOT_THERE"),
        (["ftp://a/b"], "does not start with http"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    done = watch(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr.strip().count("\n") == 0, done.stderr


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "ruptures.py").write_text("raise ImportError\n", encoding="utf-8")
    path = f"{tmp_path}:{ENVIRON['PYTHONPATH']}"
    done = watch(tmp_path, "http://127.0.0.1:1/", "--once", PYTHONPATH=path)
    assert done.returncode == 2
    assert "pip install 'tailrace[watch]'" in done.stderr
    assert done.stderr.strip().count("\n") == 0


@pytest.mark.model
def test_a_scenario_is_watched_case_by_case(tmp_path: Path) -> None:
    changes = ["--set", "target.url=http://127.0.0.1:1/v1", "--set", "load.length=1s"]
    done = watch(tmp_path, "embed", *changes, "--once", "--json")
    assert done.returncode == 2, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events
    assert {event["kind"] for event in events} == {"down"}
