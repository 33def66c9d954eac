"""Refuse new work while the machine is short of memory, before the kernel has to choose a victim."""

from collections.abc import Callable
from math import inf
from pathlib import Path

from tailrace.core.admission import LaneView
from tailrace.core.errors import MemoryPressure
from tailrace.core.events import Settled
from tailrace.core.work import Work

CGROUP = Path("/sys/fs/cgroup")


def memory_used_share() -> float:
    """The share of memory in use, 0 to 1: of the cgroup's limit where there is one, else of the machine."""
    for used, limit in (
        (CGROUP / "memory.current", CGROUP / "memory.max"),
        (CGROUP / "memory/memory.usage_in_bytes", CGROUP / "memory/memory.limit_in_bytes"),
    ):
        try:
            most = int(limit.read_text())
            if most < 1 << 60:
                return int(used.read_text()) / most
        except (OSError, ValueError):
            continue
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines if "kB" in line}
    return 1.0 - sizes["MemAvailable"] / sizes["MemTotal"]


class MemoryPressurePolicy:
    """Refuses while more than `used_max` of memory is in use, looking at most once in `every_s`."""

    def __init__(
        self,
        used_max: float = 0.95,
        *,
        every_s: float = 0.1,
        retry_after_s: float = 5.0,
        read: Callable[[], float] = memory_used_share,
    ) -> None:
        self.used_max = used_max
        self._every_s = every_s
        self._retry_after_s = retry_after_s
        self._read = read
        self._share = 0.0
        self._looked = -inf

    def admit(self, work: Work, view: LaneView) -> float:  # noqa: ARG002 - the policy's shape
        """Any start will do; raises MemoryPressure."""
        if view.now - self._looked >= self._every_s:
            self._share, self._looked = self._read(), view.now
        if self._share > self.used_max:
            raise MemoryPressure(
                f"{self._share:.0%} of memory is in use; new work is taken below {self.used_max:.0%}.",
                retry_after_s=self._retry_after_s,
            )
        return inf

    def observe(self, settled: Settled) -> None:
        """Nothing to learn."""
