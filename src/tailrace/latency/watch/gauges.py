"""The state of a watch as gauges in a file, for node_exporter's textfile collector."""

from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from tailrace.latency.watch.rounds import Event


class Gauges:
    """Written anew, in one step, after every round."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._registry = CollectorRegistry()
        case = ["watch", "case"]
        of = [*case, "part"]
        self._seconds = self._gauge(
            "part_seconds", "Time of a part, or of total.", [*of, "quantile"]
        )
        self._share = self._gauge("part_share", "Share of the mean, 0..1.", of)
        self._leader = self._gauge("leader", "1 for the part that leads.", of)
        self._expired = self._gauge(
            "expired", "1 where the latest round found the answer expired.", case
        )
        self._down = self._gauge("down", "1 where the latest round measured nothing.", case)
        self._last = self._gauge("last_run_timestamp_seconds", "When the latest run began.", case)

    def _gauge(self, name: str, says: str, labels: list[str]) -> Gauge:
        return Gauge(f"tailrace_watch_{name}", says, labels, registry=self._registry)

    def write(self, event: Event) -> None:
        """Note what a round came to, and write the file; raises OSError."""
        point, case = event.point, (event.watch, event.point.case)
        self._expired.labels(*case).set(bool(point.expired))
        self._down.labels(*case).set(point.gap is not None)
        if point.gap is None and point.total is not None:
            self._last.labels(*case).set(point.at)
            for name, level in {**point.parts, "total": point.total}.items():
                self._share.labels(*case, name).set(level.share)
                for quantile, ms in (("0.5", level.p50), ("0.95", level.p95)):
                    value = float("nan") if ms is None else ms / 1e3
                    self._seconds.labels(*case, name, quantile).set(value)
                if name != "total":
                    self._leader.labels(*case, name).set(name == point.leader)
        write_to_textfile(str(self._path), self._registry)
