"""PostgreSQL servers for tests: started in a temporary directory, on a free port, by no privileged user."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path


def debian_bin() -> Path | None:
    """Where Debian's newest PostgreSQL keeps its programs."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3])
    )
    return found[-1].parent if found else None


def wheel_bin() -> Path | None:
    """Where the wheel that carries PostgreSQL with pgvector keeps them."""
    spec = find_spec("pgserver")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "pginstall" / "bin"


class Postgres:
    """One server; `stop` it."""

    def __init__(self, programs: Path) -> None:
        self._user = "postgres" if os.geteuid() == 0 else None
        self._programs = programs
        self._home = Path(tempfile.mkdtemp(prefix="tailrace-postgres-"))
        if self._user:
            who = pwd.getpwnam(self._user)
            os.chown(self._home, who.pw_uid, who.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        self._run(
            "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"
        )
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self._home,
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        settings = f"-p {self._port} -c listen_addresses=127.0.0.1 -k {self._home} -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", settings, "start")

    def halt(self) -> None:
        """Stop as a crash does; `start` brings it back."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    def stop(self) -> None:
        """Stop for good and leave nothing behind."""
        if (self._home / "data" / "postmaster.pid").exists():
            self.halt()
        shutil.rmtree(self._home)
