"""What Linux knows of a live connection: the smallest round trip it has seen, without sending anything.

`tcpi_min_rtt` only: the smoothed `tcpi_rtt` holds the server's thinking, because its acknowledgement
rides on the reply. Source of the layout: `struct tcp_info` in linux/tcp.h, which only ever grows.
"""

import socket
import struct
from typing import NamedTuple, Protocol

RETRANSMITS_AT = 100
MIN_RTT_AT = 148
SIZE = 152
UNKNOWN = 0xFFFFFFFF


class TcpInfo(NamedTuple):
    """Two of the kernel's figures."""

    min_rtt_ns: int | None
    retransmits: int


class HasOptions(Protocol):
    """A socket, or what an event loop gives out in its place."""

    def getsockopt(self, level: int, option: int, length: int, /) -> bytes:
        """The option's value as bytes."""


def tcp_info(sock: HasOptions) -> TcpInfo:
    """Read the figures; what is not known (no Linux, an old kernel, no TCP) is None and 0."""
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE)
    except (AttributeError, OSError):
        return TcpInfo(None, 0)
    retransmits = _u32(raw, RETRANSMITS_AT) if len(raw) >= RETRANSMITS_AT + 4 else 0
    if len(raw) < SIZE:
        return TcpInfo(None, retransmits)
    micros = _u32(raw, MIN_RTT_AT)
    return TcpInfo(None if micros in {0, UNKNOWN} else micros * 1000, retransmits)


def _u32(raw: bytes, at: int) -> int:
    value: int = struct.unpack_from("=I", raw, at)[0]
    return value
