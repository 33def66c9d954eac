"""Two runs side by side: are they alike, what changed, has the bottleneck moved, and why."""

from tailrace.latency.compare.alike import Incomparable
from tailrace.latency.compare.comparison import Comparison, compare
from tailrace.latency.compare.measured import Measured, measured

__all__ = ["Comparison", "Incomparable", "Measured", "compare", "measured"]
