"""What a run was measured on: machine, versions, commit. No names of hosts, people or paths."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FLAGS = frozenset(
    [
        *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl"),
        *("avx512_vnni", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"),
        *("asimd", "asimddp", "sve", "i8mm", "bf16"),
    ]
)
"""Of the processor's flags, those that arithmetic on a model depends on."""
PACKAGES = ("tailrace", "numpy", "scipy", "httptools", "onnxruntime", "tokenizers", "uvicorn")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def fingerprint(model: str | None = None) -> dict[str, Any]:
    """Facts that a figure depends on; `model` is the fingerprint the server tells, if it does."""
    cpu, flags = _processor()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu,
        "cpu_flags": sorted(flags),
        "cores": _cores(),
        "governor": _first_line(GOVERNOR),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "model": model,
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> tuple[str, frozenset[str]]:
    name, flags = platform.machine(), frozenset[str]()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return name, flags
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        elif key.strip() in {"flags", "Features"}:
            flags = FLAGS & set(value.split())
    return name, flags


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """What git says of the source this runs from; None where it is no repository."""
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
