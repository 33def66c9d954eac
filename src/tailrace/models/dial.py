"""How an upstream is reached: its address as a stage of its own, a proxy if the environment names one.

Knows the network part of httpcore2 and nothing of requests.
"""

import asyncio
import ssl
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2

from tailrace.models.errors import ModelUnavailable
from tailrace.models.stages import CURRENT

PROXY_SCHEMES = {"http", "https"}


def proxy_for(url: str) -> httpcore2.Proxy | None:
    """The proxy that HTTPS_PROXY or HTTP_PROXY name for `url`, if NO_PROXY lets it.

    Raises ModelUnavailable for an address that is no proxy's; it never says a password.
    """
    parts = urlsplit(url)
    named = getproxies().get(parts.scheme)
    if not named or proxy_bypass(parts.netloc):
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme not in PROXY_SCHEMES or not proxy.hostname:
        raise ModelUnavailable(
            f"the environment names a proxy for {parts.scheme} that is no http:// address"
        )
    auth = None
    if proxy.username is not None:
        auth = (unquote(proxy.username), unquote(proxy.password or ""))
    host = f"[{proxy.hostname}]" if ":" in proxy.hostname else proxy.hostname
    port = proxy.port or (443 if proxy.scheme == "https" else 80)
    return httpcore2.Proxy(f"{proxy.scheme}://{host}:{port}", auth=auth)


class Dial(httpcore2.AsyncNetworkBackend):
    """Finds the address in a stage of its own, then tries the addresses in turn."""

    def __init__(self) -> None:
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's shape
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address that takes one."""
        stages = CURRENT.get()
        stages.fresh = True
        addresses = [host]
        if not _is_address(host):
            stages.begin("dns")
            try:
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
            except OSError as error:
                raise httpcore2.ConnectError(f"no address: {error}") from error
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        stages.begin("connect")
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
            else:
                return _Heard(stream)
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Heard(httpcore2.AsyncNetworkStream):
    """A connection that tells the request's stages when the first byte of an answer has come."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's shape
    ) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        stages = CURRENT.get(None)
        if data and stages is not None:
            stages.heard = True
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's shape
    ) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's shape
    ) -> httpcore2.AsyncNetworkStream:
        return _Heard(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
