"""The measuring client: what it sends, what it stamps, and what it says of servers on a bad day."""

import asyncio
import itertools
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import trustme
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from scripted import CLOSE, RESET, Answer, Scripted, reply, scripted
from tailrace.latency.address import BadAddress
from tailrace.latency.exchange import Exchange, now_ns
from tailrace.latency.http1 import HEAD_BYTES_MAX, BadHeader, Connection
from tailrace.latency.pool import Pool


@pytest.fixture(
    autouse=True, params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loops: what they call and when differs."""

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    monkeypatch.setattr(asyncio, "run", run)


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def ask(
    *answers: Answer,
    times: int = 1,
    timeout_s: float = 5.0,
    method: str = "GET",
    body: bytes = b"",
) -> list[Exchange]:
    async def main() -> list[Exchange]:
        async with scripted(*answers) as server, Pool() as pool:
            return [
                await pool.request(method, server.url, body=body, timeout_s=timeout_s)
                for _ in range(times)
            ]

    return asyncio.run(main())


def using(work: Callable[[Scripted, Pool], Awaitable[None]], *answers: Answer) -> None:
    async def main() -> None:
        async with scripted(*answers) as server, Pool() as pool:
            await work(server, pool)

    asyncio.run(main())


def in_order(exchange: Exchange) -> bool:
    s = exchange.stamps
    moments = [s.intended, s.taken, s.dns_start, s.dns, s.tcp, s.tls, s.connected, s.sent]
    moments += [s.first_byte, s.head, s.last_byte]
    reached = [moment for moment in moments if moment is not None]
    return all(a <= b for a, b in itertools.pairwise(reached))


def test_a_connection_is_kept_and_its_facts_are_told() -> None:
    first, second = ask([reply(b"hi")], times=2)
    for exchange in (first, second):
        assert exchange.complete
        assert (exchange.status, exchange.body) == (200, b"hi")
        assert in_order(exchange)
        assert exchange.connection is not None
        assert exchange.connection.min_rtt_ns is not None
        assert 0 < exchange.connection.min_rtt_ns < 1_000_000_000
    assert first.connection
    assert not first.connection.reused
    assert second.connection
    assert second.connection.reused
    assert first.stamps.dns_start is not None
    assert second.stamps.dns_start is None


def test_chunks_keep_the_moments_at_which_they_came() -> None:
    [exchange] = ask([CHUNKED, b"3\r\nabc\r\n", 0.05, b"2\r\nde\r\n", 0.05, b"0\r\n\r\n"])
    assert exchange.body == b"abcde"
    early, late = exchange.chunks
    assert late.at_ns - early.at_ns > 25_000_000
    assert exchange.stamps.last_byte is not None
    assert exchange.stamps.last_byte - late.at_ns > 25_000_000
    assert exchange.stamps.first_byte is not None
    assert exchange.stamps.first_byte <= early.at_ns


def test_trailers_are_kept_apart_from_headers() -> None:
    [exchange] = ask([CHUNKED, b"1\r\na\r\n0\r\nServer-Timing: total;dur=5\r\n\r\n"])
    assert exchange.trailers == {"server-timing": "total;dur=5"}
    assert "server-timing" not in exchange.headers


def test_a_repeated_header_is_joined() -> None:
    [exchange] = ask([reply(headers=[("Server-Timing", "a;dur=1"), ("Server-Timing", "b;dur=2")])])
    assert exchange.headers["server-timing"] == "a;dur=1, b;dur=2"


def test_an_early_hint_is_no_answer() -> None:
    [exchange] = ask([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", 0.02, reply(b"real")])
    assert (exchange.status, exchange.body) == (200, b"real")
    assert "link" not in exchange.headers


def test_a_body_that_ends_with_the_connection_is_whole() -> None:
    first, second = ask([b"HTTP/1.1 200 OK\r\n\r\nto the end", CLOSE], times=2)
    for exchange in (first, second):
        assert exchange.complete
        assert exchange.body == b"to the end"
    assert second.connection
    assert not second.connection.reused


def test_answers_without_a_body() -> None:
    [exchange] = ask([b"HTTP/1.1 204 No Content\r\n\r\n"])
    assert exchange.complete
    [exchange] = ask([b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"], method="HEAD")
    assert exchange.complete


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ([CLOSE], "hung-up"),
        ([RESET], "hung-up"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", CLOSE], "truncated"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", 0.02, RESET], "truncated"),
        ([CHUNKED, b"5\r\nab", CLOSE], "truncated"),
        ([CHUNKED, b"2\r\nab\r\n", CLOSE], "truncated"),
        ([b"HTTP/1.1 200 OK\r\nx: ", CLOSE], "truncated"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"], "malformed"),
        ([CHUNKED, b"zz\r\n"], "malformed"),
        ([b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"], "malformed"),
        ([b"HTTP/1.1 200 OK\r\nx: " + b"y" * (HEAD_BYTES_MAX + 1)], "too-large"),
        ([0.5], "timeout"),
        ([b"HTTP/1.1 200", 0.5], "timeout"),
        ([CHUNKED, b"2\r\nab\r\n", 0.5], "timeout"),
    ],
)
def test_a_broken_answer_says_how_it_broke(answer: Answer, kind: str) -> None:
    [exchange] = ask(answer, timeout_s=0.2)
    assert exchange.failure is not None
    assert exchange.failure.kind == kind
    assert exchange.stamps.ended is not None
    assert not exchange.complete
    assert in_order(exchange)


def test_a_connection_that_broke_is_not_used_again() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        broken = await pool.request("GET", server.url, timeout_s=0.1)
        assert broken.failure
        assert broken.failure.kind == "timeout"
        whole = await pool.request("GET", server.url)
        assert whole.body == b"second"
        assert whole.connection
        assert not whole.connection.reused

    using(work, [0.4, reply(b"late")], [reply(b"second")])


def test_closed_while_idle_is_tried_again_on_a_fresh_connection_and_marked() -> None:
    """The server takes the request on the kept connection and hangs up without a word."""

    async def work(server: Scripted, pool: Pool) -> None:
        first = await pool.request("GET", server.url)
        second = await pool.request("GET", server.url)
        assert not first.retried
        assert second.complete
        assert second.retried
        assert second.connection
        assert not second.connection.reused
        assert in_order(second)
        assert server.connections == 2

    using(work, [reply()], [CLOSE], [reply()])


def test_a_fresh_connection_that_hangs_up_is_not_tried_again() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        exchange = await pool.request("GET", server.url)
        assert exchange.failure
        assert exchange.failure.kind == "hung-up"
        assert not exchange.retried
        assert server.connections == 1

    using(work, [CLOSE])


def test_a_close_that_is_seen_in_time_costs_no_retry() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        await pool.request("GET", server.url)
        await asyncio.sleep(0.1)
        second = await pool.request("GET", server.url)
        assert second.complete
        assert not second.retried

    using(work, [reply(), CLOSE], [reply()])


def test_waiting_for_a_connection_is_stamped() -> None:
    async def main() -> None:
        async with scripted([0.05, reply()]) as server, Pool(connections=1) as pool:
            both = await asyncio.gather(*(pool.request("GET", server.url) for _ in range(2)))
            assert server.connections == 1
        waits = sorted(e.stamps.connected - e.stamps.taken for e in both if e.stamps.connected)
        assert waits[1] - waits[0] > 25_000_000

    asyncio.run(main())


def test_the_intended_start_is_kept() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        meant = now_ns() - 30_000_000
        exchange = await pool.request("GET", server.url, intended_ns=meant)
        assert exchange.stamps.intended == meant
        assert exchange.stamps.taken - meant >= 30_000_000

    using(work, [reply()])


def test_what_is_sent_is_what_was_asked_for() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        url = f"{server.url}/검색?q=a b"
        await pool.request("POST", url, {"X-Who": "me"}, b"body")
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST /%EA%B2%80%EC%83%89?q=a%20b HTTP/1.1"
        assert b"x-who: me" in lines
        assert b"content-length: 4" in lines
        assert b"accept-encoding: identity" in lines
        assert body == b"body"

    using(work, [reply()])


def test_a_large_body_is_sent_whole_before_it_counts_as_sent() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        exchange = await pool.request("POST", server.url, body=b"x" * (24 << 20))
        assert exchange.complete
        assert in_order(exchange)
        assert len(server.requests[0]) > 24 << 20

    using(work, [reply()])


@pytest.mark.parametrize("url", ["ftp://a/", "http://", "a.b", "http://u:p@h/", "http://h:99999/"])
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    async def main() -> None:
        async with Pool() as pool:
            await pool.request("GET", url)

    with pytest.raises(BadAddress) as caught:
        asyncio.run(main())
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\0", "열쇠"])
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(value: str) -> None:
    async def main() -> None:
        async with Pool() as pool:
            await pool.request("GET", "http://127.0.0.1:1/", {"authorization": value})

    with pytest.raises(BadHeader) as caught:
        asyncio.run(main())
    assert "authorization" in str(caught.value)
    assert value not in str(caught.value)


def test_nobody_there() -> None:
    async def main() -> list[Exchange]:
        async with Pool() as pool:
            return [
                await pool.request("GET", "http://127.0.0.1:1/"),
                await pool.request("GET", "http://nowhere.invalid/"),
            ]

    for exchange in asyncio.run(main()):
        assert exchange.failure is not None
        assert exchange.failure.kind == "unreachable"
        assert exchange.connection is None


def secure(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_tls_is_a_step_of_its_own_and_its_version_is_told() -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def main() -> None:
        async with scripted([reply(b"hi")], tls=secure(authority)) as server:
            async with Pool(tls=trusting) as pool:
                first = await pool.request("GET", server.url)
                second = await pool.request("GET", server.url)
            assert first.body == second.body == b"hi"
            s = first.stamps
            assert s.tls is not None
            assert s.tcp is not None
            assert s.tls > s.tcp
            assert in_order(first)
            for exchange in (first, second):
                assert exchange.connection is not None
                assert exchange.connection.tls_version == "TLSv1.3"
                assert exchange.connection.min_rtt_ns is not None
            assert second.connection
            assert second.connection.reused

    asyncio.run(main())


def test_an_untrusted_certificate_is_a_failure_of_tls() -> None:
    async def main() -> None:
        async with scripted([reply()], tls=secure(trustme.CA())) as server, Pool() as pool:
            exchange = await pool.request("GET", server.url)
        assert exchange.failure is not None
        assert exchange.failure.kind == "tls"
        assert (
            "certificate" in exchange.failure.message or "self-signed" in exchange.failure.message
        )

    asyncio.run(main())


def test_https_to_a_server_that_speaks_plain_http_is_a_failure_of_tls() -> None:
    async def main() -> None:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Pool() as pool:
            exchange = await pool.request("GET", f"https://127.0.0.1:{port}/")
        assert exchange.failure
        assert exchange.failure.kind == "tls"

    asyncio.run(main())


def test_connections_made_beforehand_are_used_first() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        assert await pool.warm(server.url, 3) is None
        both = await asyncio.gather(*(pool.request("GET", server.url) for _ in range(3)))
        assert all(exchange.stamps.dns_start is None for exchange in both)
        assert server.connections == 3
        failed = await pool.warm("http://127.0.0.1:1/", 2)
        assert failed is not None
        assert failed.failure
        assert failed.failure.kind == "unreachable"

    using(work, [reply()])


def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        task = asyncio.create_task(pool.request("GET", server.url))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        exchange = await pool.request("GET", server.url)
        assert exchange.body == b"next"
        assert exchange.connection
        assert not exchange.connection.reused

    using(work, [0.3, reply(b"first")], [reply(b"next")])


def test_a_request_cancelled_in_the_moment_of_its_answer_leaves_no_connection_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(server: Scripted, pool: Pool) -> None:
        held: list[Connection] = []
        complete = Connection._complete

        def complete_and_cancel(connection: Connection) -> None:
            complete(connection)
            held.append(connection)
            task.cancel()

        monkeypatch.setattr(Connection, "_complete", complete_and_cancel)
        task = asyncio.create_task(pool.request("GET", server.url))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [connection.usable for connection in held] == [False]

    using(work, [reply(b"first")])


ANSWERS = (
    (
        b"HTTP/1.1 200 OK\r\nX-A: one\r\nx-a: two\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\nX-Trailer: t\r\n\r\n"
    ),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 6\r\n\r\nhello!",
    b"HTTP/1.1 200 OK\r\n\r\nhello!",
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ANSWERS), st.lists(st.integers(1, 140), max_size=12))
def test_cuts_on_the_way_change_nothing_but_the_moments(answer: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(answer)), len(answer)]
    steps: list[bytes | float | str] = []
    for a, b in itertools.pairwise(edges):
        steps += [answer[a:b], 0.0005]
    [exchange] = ask([*steps, CLOSE])
    assert exchange.complete
    assert exchange.body == b"hello!"
    assert in_order(exchange)
    moments = [chunk.at_ns for chunk in exchange.chunks]
    assert moments == sorted(moments)
    if answer is ANSWERS[0]:
        assert exchange.headers["x-a"] == "one, two"
        assert exchange.trailers == {"x-trailer": "t"}
