"""A peer as processes: its scripts, its tree, what the tree uses. Kills only what it started."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPT_S = 60.0
INSTALL_S = 1800.0
READY_S = 120.0
STOP_S = 30
TICK = os.sysconf("SC_CLK_TCK")


class PeerFailed(Exception):
    """A peer did not install, start or answer; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, known for certain: a pid can be used again, a pid with a start time cannot."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says."""

    parent: int
    session: int
    ticks: int
    started: int
    zombie: bool


def free_port() -> int:
    """A port that is free on loopback, as are the next two."""
    for base in range(18_000, 30_000, 7):
        taken = []
        try:
            for port in (base, base + 1, base + 2):
                held = socket.socket()
                taken.append(held)
                held.bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for held in taken:
                held.close()
        return base
    raise PeerFailed("no free port on loopback")


def stat(pid: int) -> Stat | None:
    """None where there is no such process any more."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    return Stat(int(fields[1]), int(fields[3]), ticks, int(fields[19]), fields[0] == "Z")


class Peer:
    """One peer's folder and, between start and stop, its processes."""

    def __init__(self, folder: Path, home: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.home = home
        self.port = 0
        self.pid = 0
        self._environment = {**os.environ, **environment, "PEER_HOME": str(home)}

    def _script(self, name: str, timeout_s: float = SCRIPT_S) -> subprocess.CompletedProcess[str]:
        environment = {**self._environment, "PORT": str(self.port), "STOP_S": str(STOP_S)}
        try:
            return subprocess.run(
                [str(self.folder / name)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PeerFailed(f"{name} took longer than {timeout_s:.0f} s") from None

    def install(self) -> None:
        """Into its own venv."""
        self.home.mkdir(parents=True, exist_ok=True)
        mark = self.home / ".installed"
        if mark.exists() and self.folder.name != "tailrace":
            return
        done = self._script("install", INSTALL_S)
        if done.returncode:
            raise PeerFailed(f"install failed: {_tail(done.stderr)}")
        mark.touch()

    def start(self) -> float:
        """Start it; the seconds until it answered."""
        self.port = free_port()
        began = time.monotonic()
        done = self._script("start")
        if done.returncode:
            raise PeerFailed(f"start failed: {_tail(done.stderr)}")
        self.pid = int((self.home / "pid").read_text())
        while self._script("ready").returncode:
            if stat(self.pid) is None or time.monotonic() - began > READY_S:
                log = (self.home / "log").read_text(errors="replace")
                self.kill(self.tree())
                raise PeerFailed(f"it did not get ready: {_tail(log)}")
            time.sleep(0.1)
        return time.monotonic() - began

    def answers(self) -> bool:
        """Whether it embeds now."""
        return self._script("ready").returncode == 0

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to the same pid after STOP_S."""
        self._script("stop", STOP_S + 15)

    def tree(self) -> set[Process]:
        """Its processes: those of its session, and all their descendants."""
        every = {int(entry): stat(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()}
        found: dict[int, Stat] = {}
        grown = True
        while grown:
            grown = False
            for pid, seen in every.items():
                if seen is None or seen.zombie or pid in found:
                    continue
                if self.pid in {pid, seen.session} or seen.parent in found:
                    found[pid] = seen
                    grown = True
        return {Process(pid, seen.started) for pid, seen in found.items()}

    def kill(self, processes: set[Process]) -> None:
        """End what outlived its stop, each by its own pid."""
        for process in processes:
            if alive(process):
                os.kill(process.pid, signal.SIGKILL)
        (self.home / "pid").unlink(missing_ok=True)

    def memory_mib(self) -> tuple[float, float]:
        """(RSS, PSS) of the tree."""
        rss = pss = 0
        for process in self.tree():
            try:
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            except OSError:
                continue
            for line in text.splitlines():
                if line.startswith("Rss:"):
                    rss += int(line.split()[1])
                elif line.startswith("Pss:"):
                    pss += int(line.split()[1])
        return rss / 1024, pss / 1024

    def cpu_s(self) -> float:
        """CPU time that the living tree has used."""
        seen = (stat(process.pid) for process in self.tree())
        return sum(one.ticks for one in seen if one is not None) / TICK

    def install_mib(self) -> float:
        """What its venv takes on disk, without pip and setuptools."""
        du = shutil.which("du") or "du"
        venv = str(self.home / "venv")
        command = [du, "-sk", "--exclude=pip*", "--exclude=setuptools*", venv]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0]) / 1024


def alive(process: Process) -> bool:
    """Whether it is still that very process."""
    seen = stat(process.pid)
    return seen is not None and seen.started == process.started and not seen.zombie


def busy_s() -> float:
    """CPU time that everybody on the machine has used."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / TICK


def _tail(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and "WARNING" not in line]
    return " / ".join(lines[-3:])[-400:] or "(no output)"
