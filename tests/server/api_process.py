"""`tailrace api` as a process of its own, over the tiny model."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from boxes import ENVIRON


@contextlib.contextmanager
def server_process(
    folder: Path, tmp_path: Path, *lines: str, runs: str = ""
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`tailrace api` as a process, over the tiny model."""
    config = tmp_path / "api.toml"
    config.write_text(
        "\n".join(
            [
                "threads = 2",
                "[server]",
                "port = 0",
                *lines,
                "[[models]]",
                'name = "tiny"',
                'kind = "embedding"',
                f"source = {json.dumps(f'dir:{folder}')}",
                f"runs = {{ {runs} }}",
            ]
        )
    )
    code = "from tailrace.cli.main import main; main()"
    command = [sys.executable, "-c", code, "api", "--config", str(config)]
    environ = {**ENVIRON, "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        assert process.stderr is not None
        line = ""
        while "http://" not in line:
            line = process.stderr.readline()
            assert line, "it ended"
        yield process, "http://" + line.split("http://", 1)[1].split()[0]
    finally:
        process.kill()
        process.communicate(timeout=30)
