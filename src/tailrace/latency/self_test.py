"""Does the client read true on this machine, now? Servers of known delay, asked in turn."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tailrace.latency.fixed_delay import fixed_delays
from tailrace.latency.pool import Pool
from tailrace.wire.headers import SERVER_TIMING, parse_server_timing

DELAYS_MS = (0.0, 5.0, 100.0)
TOLERANCE_MS = 0.2
ROUNDS = 60
SLOW_ROUNDS = 20
"""Rounds in which the slowest server is asked too."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the client read of one delay: from the last byte sent to the first byte received; medians."""

    delay_ms: float
    read_ms: float
    off_ms: float
    """By how much it reads more than the server held the request: loopback, wake-ups, and the client."""
    n: int

    @property
    def good(self) -> bool:
        """Whether it is within the tolerance."""
        return abs(self.off_ms) <= TOLERANCE_MS


async def self_test(
    tell: Callable[[float], None] | None = None, rounds: int = ROUNDS
) -> list[Reading]:
    """Ask all the servers in turn, so that what the machine does besides hits them alike.

    `tell` hears how far it is, from 0 to 1. Raises OSError where the servers cannot be started.
    """
    read: dict[float, list[float]] = {delay: [] for delay in DELAYS_MS}
    off: dict[float, list[float]] = {delay: [] for delay in DELAYS_MS}
    with fixed_delays(DELAYS_MS) as urls:
        async with Pool() as pool:
            for url in urls:
                await pool.request("GET", url)
            for number in range(rounds):
                for delay, url in zip(DELAYS_MS, urls, strict=True):
                    if delay == DELAYS_MS[-1] and number >= SLOW_ROUNDS:
                        continue
                    exchange = await pool.request("GET", url)
                    stamps = exchange.stamps
                    if stamps.first_byte is None or stamps.sent is None:
                        raise OSError("a server of fixed delay gave no answer")
                    held = parse_server_timing(exchange.headers[SERVER_TIMING.lower()])["app"]
                    wait = (stamps.first_byte - stamps.sent) / 1e6
                    read[delay].append(wait)
                    off[delay].append(wait - held)
                if tell is not None:
                    tell((number + 1) / rounds)
    return [
        Reading(delay, median(read[delay]), median(off[delay]), len(off[delay]))
        for delay in DELAYS_MS
    ]
