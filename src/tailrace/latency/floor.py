"""How much of a wait is the path: the smallest round trip that the live connection has seen.

Behind a CDN the connection ends at its edge, and so does the figure. Sends nothing.
"""

from collections.abc import Mapping

from tailrace.latency.exchange import Exchange
from tailrace.latency.partition import Figure

TO_THE_EDGE = "to the edge"
EDGE_HEADERS = (
    "cf-ray",
    "x-amz-cf-id",
    "x-served-by",
    "x-fastly-request-id",
    "x-akamai-request-id",
    "x-azure-ref",
    "x-vercel-id",
    "fly-request-id",
    "cdn-loop",
    "via",
)
"""Headers that somebody between the caller and the origin leaves behind."""


def edge(headers: Mapping[str, str]) -> str | None:
    """The header that betrays an edge, or None."""
    return next((name for name in EDGE_HEADERS if name in headers), None)


def floor(exchange: Exchange) -> Figure | None:
    """The path's share of the wait; None where the kernel does not tell."""
    facts = exchange.connection
    if facts is None or facts.min_rtt_ns is None:
        return None
    note = TO_THE_EDGE if edge(exchange.headers) else None
    return Figure(facts.min_rtt_ns, "measured", note=note)
