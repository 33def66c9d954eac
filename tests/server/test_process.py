"""The box as a process: how it starts, how it stops, and what the command line says."""

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from boxes import DOORS, ENVIRON, HERE, Served, crowd, fresh, serving
from tailrace.bench.crowd import Caller
from tailrace.bench.reviews import reviews


class Process:
    """A box that runs by itself."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process, self.url = process, url

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=10, trust_env=False, verify=False)

    def children(self) -> list[int]:
        return children_of(self.process.pid)

    def stop(self, how: int = signal.SIGTERM) -> float:
        """Send a signal and wait for the end; the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(60)
        return time.monotonic() - began


def children_of(pid: int) -> list[int]:
    """The living child processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def gone(pid: int, patience_s: float = 10.0) -> bool:
    """Whether a process ends (or is a zombie that only waits to be counted) in time."""
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@contextlib.contextmanager
def box_process(seconds: float = 0.1, **settings: Any) -> Iterator[Process]:
    command = [sys.executable, str(HERE / "box_process.py"), "--seconds", str(seconds)]
    for name, value in settings.items():
        command += ["--set", f"{name.replace('__', '.')}={json.dumps(value)}"]
    process = subprocess.Popen(
        command, env=ENVIRON, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), process.stderr and process.stderr.read()
        yield Process(process, url)
    finally:
        process.kill()
        process.communicate(timeout=30)


async def crowd_and_signal(box: Process, door: str, count: int, after_s: float) -> list[Caller]:
    going = asyncio.create_task(asyncio.to_thread(crowd, box.url, door, fresh(count)))
    await asyncio.sleep(after_s)
    await asyncio.to_thread(box.stop)
    return await going


@pytest.mark.parametrize("door", ["limited", "batched"])
def test_a_box_told_to_stop_answers_everyone_it_let_in_and_leaves_no_child(door: str) -> None:
    with box_process(seconds=0.4) as box:
        (child,) = box.children()
        callers = asyncio.run(crowd_and_signal(box, door, 5, 0.5))
        assert [c.status for c in callers] == [200] * 5
        assert [c.error for c in callers] == [""] * 5
        assert gone(child)
        assert box.process.returncode in {0, -signal.SIGTERM}


def test_a_box_told_to_stop_while_idle_is_gone_at_once() -> None:
    with box_process() as box:
        (child,) = box.children()
        assert box.stop() < 5.0
        assert gone(child)


def test_a_ticket_on_the_model_is_finished_before_the_box_is_gone() -> None:
    with box_process(seconds=1.0) as box:
        accepted = httpx.post(
            box.url + DOORS["queue"],
            json={"text": fresh()[0]},
            timeout=10,
            trust_env=False,
            verify=False,
        )
        assert accepted.status_code == 202
        time.sleep(0.2)
        assert box.stop() >= 0.4


def test_an_open_stream_does_not_hold_up_the_end() -> None:
    with (
        box_process() as box,
        httpx.Client(trust_env=False, verify=False, timeout=30) as client,
        client.stream("GET", box.url + "/api/events") as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        box.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        for _ in lines:
            pass
        box.process.wait(30)
        assert time.monotonic() - began < 5.0


def test_no_box_outlives_its_grace_however_slow_the_model() -> None:
    with box_process(seconds=30.0, server__drain_grace_s=1.0) as box:
        with pytest.raises(httpx.HTTPError):
            asyncio.run(_one_slow(box))
        assert box.process.returncode is not None


async def _one_slow(box: Process) -> None:
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        asking = asyncio.create_task(
            client.post(box.url + DOORS["limited"], json={"text": fresh()[0]})
        )
        await asyncio.sleep(0.5)
        took = await asyncio.to_thread(box.stop)
        assert took < 25.0, "a grace of 1 s and some time to clean up; the model would take 30"
        answer = await asking
        if answer.status_code >= 500:
            raise httpx.HTTPError("given up")


def test_a_box_that_is_killed_takes_its_child_along() -> None:
    with box_process() as box:
        (child,) = box.children()
        box.stop(signal.SIGKILL)
        assert gone(child)


def test_the_port_is_free_again_right_after_the_end() -> None:
    with box_process() as box:
        port = int(box.url.rsplit(":", 1)[1])
        assert box.get("/livez").status_code == 200
        box.stop()
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port))


# -- the command line ---------------------------------------------------------------------------


def tailrace(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    code = "from tailrace.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**ENVIRON, "COLUMNS": "120", "NO_COLOR": "1", **environ},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


def refused(result: "subprocess.CompletedProcess[str]", lines: int = 1) -> str:
    """What it said, after checking that it was short, on stderr, with exit code 2."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == lines, result.stderr
    return result.stderr


def test_a_port_that_is_taken_is_one_line_and_exit_code_2() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        said = refused(tailrace("serve", "--port", str(port)))
    assert f"127.0.0.1:{port}" in said
    assert "in use" in said


def test_a_host_that_does_not_exist_is_one_line_and_exit_code_2() -> None:
    assert "no.such.host.invalid" in refused(
        tailrace("serve", "--host", "no.such.host.invalid", "--port", "0")
    )


def test_a_missing_model_folder_is_one_line_and_exit_code_2() -> None:
    result = tailrace("serve", "--port", "0", TAILRACE__MODEL__SOURCE="dir:/nowhere/at/all")
    assert "/nowhere/at/all" in refused(result)


def test_a_model_source_that_is_none_is_one_line_and_exit_code_2() -> None:
    result = tailrace("serve", "--port", "0", TAILRACE__MODEL__SOURCE="ftp://x")
    said = refused(result)
    assert "ftp" in said
    assert "hf:ORG/NAME[@REV][:FILE]" in said


def test_all_mistakes_of_a_configuration_are_told_with_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "box.toml"
    file.write_text('[server]\nport = -1\ncolor = "x"\n[lane]\nslots = [1, "/b"]\n')
    said = refused(tailrace("serve", "--config", str(file)), lines=4)
    assert "3 mistakes" in said
    for path in ("server.port", "server.color", "lane.slots"):
        assert path in said
    assert "given: a list" in said
    assert "/b" not in said, "what is given may hold a secret"


@pytest.mark.parametrize("name", ["[/b].toml", "[bold].toml"])
def test_a_missing_configuration_file_is_named_whatever_it_is_called(
    tmp_path: Path, name: str
) -> None:
    said = refused(tailrace("serve", "--config", str(tmp_path / name)), lines=2)
    assert name in said
    assert "no such file" in said


def test_checking_prints_the_resolved_settings_as_json_and_starts_nothing() -> None:
    result = tailrace("serve", "--check", "--port", "8123", TAILRACE__LANE__BATCH__WINDOW_MS="50")
    assert result.returncode == 0
    settings = json.loads(result.stdout)
    assert settings["server"]["port"] == 8123
    assert settings["lane"]["batch"]["window_ms"] == 50


@pytest.mark.parametrize(
    ("verb", "example"),
    [("serve", "tailrace serve --port 8010"), ("burst", "--door queue")],
)
def test_help_shows_examples_one_a_line(verb: str, example: str) -> None:
    result = tailrace(verb, "--help")
    assert result.returncode == 0
    lines = [line.strip(" │") for line in result.stdout.splitlines()]
    assert any(line.startswith("tailrace ") and example in line for line in lines)
    assert sum(line.startswith("tailrace ") for line in lines) >= 3


def test_the_bare_command_shows_its_verbs() -> None:
    result = tailrace("--help")
    assert all(verb in result.stdout for verb in ("serve", "burst"))


def test_a_burst_at_nobody_is_one_line_and_exit_code_2() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        said = refused(tailrace("burst", f"http://127.0.0.1:{port}/api", "3"))
    assert "tailrace serve" in said


@pytest.mark.parametrize("url", ["https://127.0.0.1/api", "http://h:x/"])
def test_a_burst_at_no_address_is_one_line_and_exit_code_2(url: str) -> None:
    refused(tailrace("burst", url, "3"))


def test_a_burst_at_a_door_that_is_none_names_the_doors(box: Served) -> None:
    said = refused(tailrace("burst", f"{box.url}/api", "3", "--door", "back"))
    assert "limited" in said
    assert "queue" in said


@pytest.mark.parametrize("count", ["0", "201"])
def test_a_burst_of_no_sensible_size_is_refused(count: str) -> None:
    result = tailrace("burst", "http://127.0.0.1:1/api", "--", count)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_burst_shows_wait_inference_and_round_trip_of_every_caller(box: Served) -> None:
    box.box.cache.clear()
    result = tailrace("burst", f"{box.url}/api", "12", "--door", "limited")
    assert result.returncode == 0, result.stderr
    for word in ("wait", "inference", "round trip", "answer", "first topic"):
        assert word in result.stdout
    assert len(re.findall(r"429 · come back in \d+ s", result.stdout)) == 7
    assert "5 of 12 answered" in result.stdout
    assert "7 turned away" in result.stdout


def test_a_burst_as_json_is_an_object_a_line(box: Served) -> None:
    box.box.cache.clear()
    result = tailrace("burst", f"{box.url}/api", "12", "--door", "queue", "--json")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["i"] for row in rows] == list(range(1, 13))
    for row in rows:
        assert row["status"] == 202
        assert row["round_trip_ms"] >= row["answered_ms"] > 0
        assert row["inference_ms"] > 0
        assert row["topic"]["label"]
        assert row["server_timing_ms"]["total"] > 0


@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"topics": 3}',
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nnull",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
    ids=lambda answer: repr(answer[-12:]),
)
def test_a_crowd_at_something_else_is_told_so_and_does_not_hang(answer: bytes, door: str) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def main() -> list[Caller]:
        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            url = f"http://127.0.0.1:{port}/api"
            return await asyncio.wait_for(asyncio.to_thread(crowd, url, door, fresh(2)), 30)

    for caller in asyncio.run(main()):
        assert caller.done
        assert caller.error
        assert not caller.answered


def test_a_burst_cut_off_by_the_reader_is_no_traceback(box: Served) -> None:
    code = "from tailrace.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "burst", f"{box.url}/api", "5", "--door", "batched"],
        env=ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    process.wait(30)
    assert b"Traceback" not in said


def test_the_memory_of_the_child_is_measured_where_no_limit_is_given() -> None:
    with serving(seconds=0.01, child_limit=0) as box:
        limit = box.stats()["naive"]["limit_bytes"]
        assert limit > box.stats()["naive"]["rss_bytes"]
        assert [c.status for c in box.crowd("naive", fresh(3))] == [200] * 3
        assert 502 in [c.status for c in box.crowd("naive", fresh(14))]


def test_a_burst_at_something_else_shows_a_table_and_no_traceback() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"topics": [3]}')
        await writer.drain()
        writer.close()

    async def main() -> "subprocess.CompletedProcess[str]":
        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await asyncio.to_thread(tailrace, "burst", f"http://127.0.0.1:{port}/api", "2")

    result = asyncio.run(main())
    assert "Traceback" not in result.stderr
    assert result.returncode in {0, 2}


def test_a_burst_shows_a_ticket_that_failed_as_failed() -> None:
    texts = tuple(reviews(3))
    with serving(seconds=0.0, naive__enabled=False, poison=texts[1:2]) as box:
        result = tailrace("burst", f"{box.url}/api", "3", "--door", "queue")
    assert "the ticket ended as failed" in result.stdout
    assert "2 of 3 answered" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--port", "abc"], "--port"),
        (["nope"], "nope"),
        (["burst"], "url"),
        (["serve", "--nope"], "--nope"),
    ],
)
def test_what_was_typed_wrong_is_one_line_and_exit_code_2(words: list[str], said: str) -> None:
    code = "from tailrace.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env=ENVIRON,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.strip().splitlines()
    assert said in line
    assert "--help" in line


def test_a_setting_with_one_underscore_too_few_is_pointed_out() -> None:
    code = "from tailrace.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "serve", "--check"],
        capture_output=True,
        text=True,
        env={**ENVIRON, "TAILRACE_LANE__SLOTS": "2", "TAILRACE__LANE": "5"},
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "TAILRACE__LANE__SLOTS" in ended.stderr
    assert "LaneSettings" in ended.stderr
