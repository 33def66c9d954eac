"""How many cores this process may really use: affinity and cgroup quota, not what the machine has.

Knows nothing of threads or models.
"""

import math
import os
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def usable_cores(root: Path = _CGROUP_ROOT, own: Path = _OWN_CGROUP) -> int:
    """Cores this process may keep busy: its affinity, cut to its cgroup's CPU quota; at least 1.

    A quota of 1.5 cores counts as 1: a second busy thread would only be throttled.
    """
    try:
        allowed = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        allowed = os.cpu_count() or 1
    quota = cpu_quota(root, own)
    return max(1, allowed if quota is None else min(allowed, math.floor(quota)))


def cpu_quota(root: Path = _CGROUP_ROOT, own: Path = _OWN_CGROUP) -> float | None:
    """The smallest CPU quota of our cgroup and its parents, in cores; None where there is none."""
    found = [
        quota for folder in _cgroup_folders(root, own) if (quota := _quota_of(folder)) is not None
    ]
    return min(found, default=None)


def _cgroup_folders(root: Path, own: Path) -> list[Path]:
    """The folders that may hold our quota, version 2 and version 1, own group first."""
    folders = [root, root / "cpu", root / "cpu,cpuacct"]
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return folders
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        base = root / controllers if controllers else root
        if controllers and "cpu" not in controllers.split(","):
            continue
        here = base / path.strip("/")
        while here != base and base in here.parents:
            folders.append(here)
            here = here.parent
    return folders


def _quota_of(folder: Path) -> float | None:
    """The quota written in one cgroup folder, whichever version it is of."""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()[:2]
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return cores if cores > 0 else None
