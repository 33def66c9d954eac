"""An OTLP/HTTP collector for the tests: takes spans on a loopback port and keeps them as they came."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

UNSET, ERROR = 0, 2
SERVER, CLIENT, WORKER = 2, 3, 5


@dataclass(frozen=True)
class Span:
    """One span as it was sent."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start_ns: int
    end_ns: int
    status: int
    about: dict[str, Any]
    service: str

    @property
    def ms(self) -> float:
        return (self.end_ns - self.start_ns) / 1e6


@dataclass
class Collector:
    """What came, in order."""

    url: str = ""
    status: int = 200
    spans: list[Span] = field(default_factory=list)
    asked: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    """Not set: it takes requests and does not answer."""

    def wholes(self, kind: int = SERVER) -> list[Span]:
        """The spans of requests."""
        return [span for span in self.spans if span.kind == kind]

    def whole(self, name: str) -> Span:
        (found,) = [span for span in self.wholes() if span.name == name]
        return found

    def parts(self, whole: Span) -> list[Span]:
        """The spans of a request's parts, in order."""
        below = [span for span in self.spans if span.parent == whole.id and span.kind == 1]
        return sorted(below, key=lambda span: (span.start_ns, span.end_ns))


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)


def _read(body: bytes) -> list[Span]:
    asked = ExportTraceServiceRequest.FromString(body)
    return [
        Span(
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.code,
            {entry.key: _value(entry.value) for entry in span.attributes},
            next(e.value.string_value for e in of.resource.attributes if e.key == "service.name"),
        )
        for of in asked.resource_spans
        for scope in of.scope_spans
        for span in scope.spans
    ]


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()
    collector.released.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.asked += 1
            collector.released.wait(60)
            answer = ExportTraceServiceResponse().SerializeToString()
            if collector.status == 200:
                collector.spans += _read(body)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(collector.status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield collector
    finally:
        collector.released.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
