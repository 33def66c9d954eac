"""Making a connection in steps that are stamped one by one: name, TCP, TLS.

Tries the addresses of a name one after the other. Knows nothing of HTTP.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import lru_cache

from tailrace.latency.address import Address
from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.http1 import Connection

ATTEMPT_S = 3.0
"""How long one address may take to answer while others are left to try."""

Where = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Found = Sequence[tuple[int, int, int, str, Where]]
"""What a name resolves to, as `socket.getaddrinfo` has it."""


@lru_cache(maxsize=8)
def trust(ca_file: str | None = None) -> ssl.SSLContext:
    """The certificates that are trusted: the system's, or those of one file (raises OSError)."""
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(to: Address, exchange: Exchange, tls: ssl.SSLContext | None) -> Connection | None:
    """Make a connection for `exchange` and stamp its steps there; None where it has failed."""
    stamps = exchange.stamps
    stamps.dns = stamps.tcp = stamps.tls = None
    stamps.dns_start = now_ns()
    try:
        found = await _resolve(to)
    except OSError as error:
        exchange.fail("unreachable", f"no address for {to.host}: {_said(error)}")
        return None
    stamps.dns = now_ns()
    try:
        sock = await _connect(found)
    except OSError as error:
        exchange.fail("unreachable", f"nobody answers at {to.host}:{to.port}: {_said(error)}")
        return None
    stamps.tcp = now_ns()
    loop = asyncio.get_running_loop()
    secure = to.scheme == "https"
    try:
        _, connection = await loop.create_connection(
            Connection,
            sock=sock,
            ssl=(tls or trust()) if secure else None,
            server_hostname=to.host if secure else None,
        )
    except (OSError, ssl.SSLError) as error:
        sock.close()
        exchange.fail("tls", f"no secure connection with {to.host}:{to.port}: {_said(error)}")
        return None
    except BaseException:
        sock.close()
        raise
    stamps.tls = now_ns() if secure else stamps.tcp
    return connection


async def _resolve(to: Address) -> Found:
    """The addresses of the host; a literal one costs no thread."""
    try:
        return socket.getaddrinfo(
            to.host, to.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)


async def _connect(found: Found) -> socket.socket:
    """A connected socket to the first address that answers; raises OSError of the last one tried."""
    loop = asyncio.get_running_loop()
    failure = OSError("the name has no address")
    for index, (family, kind, protocol, _, where) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        patience = ATTEMPT_S if index + 1 < len(found) else None
        try:
            async with asyncio.timeout(patience):
                await loop.sock_connect(sock, where)
        except TimeoutError:
            sock.close()
            failure = OSError(f"no answer within {ATTEMPT_S:g} s")
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _said(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.strerror or str(error)
