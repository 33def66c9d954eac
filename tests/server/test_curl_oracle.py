"""Our stamps beside libcurl's, asked of the same servers in turn: name, TCP, TLS, first byte, last byte.

Delays are injected that are long beside a busy machine's noise; agreement is asked relative to them.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from pathlib import Path
from statistics import median

import pycurl
import pytest
import trustme

from scripted import Answer, scripted
from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.pool import Pool

pytestmark = pytest.mark.alone

DELAY_S = 0.08
ROUNDS = 5
WITHIN = 0.25 * DELAY_S * 1000
"""Milliseconds by which two medians may differ."""
SLOW: Answer = [
    DELAY_S,
    b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha",
    DELAY_S,
    b"lf",
]
STEPS = ("dns", "connect", "tls", "wait", "transfer", "total")


def ours(exchange: Exchange) -> dict[str, float]:
    """The steps of an exchange in milliseconds; what a kept connection spares is 0."""
    s = exchange.stamps
    assert exchange.complete, exchange.failure
    assert s.sent is not None
    assert s.first_byte is not None
    assert s.last_byte is not None
    spans = {"dns": 0, "connect": 0, "tls": 0}
    if s.dns_start is not None:
        assert s.dns is not None
        assert s.tcp is not None
        assert s.tls is not None
        spans = {"dns": s.dns - s.dns_start, "connect": s.tcp - s.dns, "tls": s.tls - s.tcp}
    spans |= {"wait": s.first_byte - s.sent, "transfer": s.last_byte - s.first_byte}
    spans["total"] = s.last_byte - s.intended
    return {name: ns / 1e6 for name, ns in spans.items()}


def curls(handle: pycurl.Curl) -> dict[str, float]:
    """The same of libcurl, whose times count from the start and stand at 0 where a step is spared."""

    def at(name: int) -> float:
        return float(handle.getinfo(name)) * 1000

    dns, tcp = at(pycurl.NAMELOOKUP_TIME), at(pycurl.CONNECT_TIME)
    tls, first = at(pycurl.APPCONNECT_TIME), at(pycurl.STARTTRANSFER_TIME)
    fresh = bool(handle.getinfo(pycurl.NUM_CONNECTS))
    return {
        "dns": dns if fresh else 0.0,
        "connect": tcp - dns if fresh else 0.0,
        "tls": tls - tcp if fresh and tls else 0.0,
        "wait": first - at(pycurl.PRETRANSFER_TIME),
        "transfer": at(pycurl.TOTAL_TIME) - first,
        "total": at(pycurl.TOTAL_TIME),
    }


@asynccontextmanager
async def delayed(url: str) -> AsyncIterator[str]:
    """A way to the server on which everything that it says is `DELAY_S` late."""
    host, _, port = url.partition("://")[2].partition(":")
    tasks: set[asyncio.Task[None]] = set()

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late_s: float
    ) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                await asyncio.sleep(late_s)
                writer.write(piece)
                await writer.drain()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        pumps = [
            asyncio.create_task(pump(reader, back, 0.0)),
            asyncio.create_task(pump(there, writer, DELAY_S)),
        ]
        tasks.update(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in pumps:
                task.cancel()
            for one in (back, writer):
                one.transport.abort()

    listening = await asyncio.start_server(relay, "127.0.0.1", 0)
    scheme = url.partition("://")[0]
    try:
        yield f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.02)


async def both(
    url: str, tls: ssl.SSLContext | None = None, ca: Path | None = None, *, fresh: bool = False
) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of the steps by our client and by libcurl, which take turns; the first go counts if `fresh`."""
    handle = pycurl.Curl()
    mine, theirs = [], []
    try:
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.NOPROXY, "*")
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.FRESH_CONNECT, fresh)
        handle.setopt(pycurl.FORBID_REUSE, fresh)
        if ca is not None:
            handle.setopt(pycurl.CAINFO, str(ca))
        async with Pool(tls=tls) as pool:
            for number in range(ROUNDS + 1):
                exchange = await pool.request("GET", url, intended_ns=now_ns(), fresh=fresh)
                body = BytesIO()
                handle.setopt(pycurl.WRITEDATA, body)
                await asyncio.to_thread(handle.perform)
                assert exchange.body == body.getvalue() == b"half"
                if number or fresh:
                    mine.append(ours(exchange))
                    theirs.append(curls(handle))
    finally:
        handle.close()
    return _medians(mine), _medians(theirs)


def _medians(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(one[name] for one in found) for name in STEPS}


def assert_agree(mine: dict[str, float], theirs: dict[str, float]) -> None:
    assert mine == pytest.approx(theirs, abs=WITHIN), (mine, theirs)


def test_a_kept_connection_reads_as_libcurl_reads_it() -> None:
    async def main() -> None:
        async with scripted(SLOW) as server:
            mine, theirs = await both(server.url)
            assert server.connections == 2, "one of each client, kept"
        assert_agree(mine, theirs)
        for read in (mine, theirs):
            assert read["dns"] == read["connect"] == read["tls"] == 0.0
            assert min(read["wait"], read["transfer"]) >= DELAY_S * 1000 - WITHIN

    asyncio.run(main())


def test_a_fresh_connection_with_tls_on_a_long_way_reads_as_libcurl_reads_it(
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    trusting, serving = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(trusting)
    authority.issue_cert("127.0.0.1").configure_cert(serving)

    async def main() -> None:
        async with scripted(SLOW, tls=serving) as server, delayed(server.url) as url:
            mine, theirs = await both(url, trusting, ca, fresh=True)
        assert_agree(mine, theirs)
        for read in (mine, theirs):
            assert read["tls"] >= DELAY_S * 1000 - WITHIN, "the handshake went the long way"
            assert read["wait"] >= 2 * DELAY_S * 1000 - WITHIN

    asyncio.run(main())


def test_a_name_is_looked_up_as_long_as_libcurl_looks_it_up() -> None:
    async def main() -> None:
        async with scripted(SLOW) as server:
            mine, theirs = await both(server.url.replace("127.0.0.1", "localhost"), fresh=True)
        assert_agree(mine, theirs)
        assert mine["dns"] > 0 < theirs["dns"]

    asyncio.run(main())
