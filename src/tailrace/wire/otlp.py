"""Requests as OpenTelemetry spans, sent to an OTLP/HTTP collector. The only file that knows the library.

A whole is put into the library's bounded queue as one piece and taken apart into a span for every part by
the thread that sends: the event loop pays for one span, whatever the number of parts.
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tailrace import __version__
from tailrace.wire.tracing import (
    OTHER_MS,
    PART,
    PART_MS,
    Begun,
    Choice,
    Finished,
)

log = logging.getLogger(__name__)

BATCH_MAX = 128
"""Requests that are sent together."""
DELAY_MS = 1000
"""How long a request waits for company before it is sent."""
PATH = "/v1/traces"
SCOPE = InstrumentationScope("tailrace", __version__)
KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "worker": SpanKind.CONSUMER}
LIBRARY = "opentelemetry.sdk._shared_internal"
"""Who logs every piece that finds the queue full."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request in its trace; see wire.tracing.Begun."""

    context: SpanContext
    parent: SpanContext | None

    @property
    def sampled(self) -> bool:
        return self.context.trace_flags.sampled

    @property
    def trace(self) -> str:
        return f"{self.context.trace_id:032x}"

    @property
    def headers(self) -> Mapping[str, str]:
        one = self.context
        made = {"traceparent": f"00-{one.trace_id:032x}-{one.span_id:016x}-{one.trace_flags:02x}"}
        if one.trace_state:
            made["tracestate"] = one.trace_state.to_header()
        return made


class _Whole(ReadableSpan):
    """The span of a request, with its parts still to be made into spans."""

    finished: Finished


class _Apart(SpanExporter):
    """Makes every whole into its span and those of its parts, and sends them; counts what is lost."""

    def __init__(self, exporter: SpanExporter, ids: IdGenerator) -> None:
        self._exporter = exporter
        self._ids = ids
        self.taken = 0
        self.failed = 0
        self._told = False

    def export(self, wholes: Sequence[ReadableSpan]) -> SpanExportResult:
        spans = [span for whole in wholes for span in self._spans(whole)]
        self.taken += len(wholes)
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._told = False
            return result
        self.failed += len(wholes)
        if not self._told:
            self._told = True  # once, not with every batch of a collector that is away
            log.warning("the collector of traces does not take them; what it misses is lost")
        return result

    def _spans(self, whole: ReadableSpan) -> list[ReadableSpan]:
        made = [whole]
        context, start = whole.context, whole.start_time
        if not isinstance(whole, _Whole) or context is None or start is None:
            return made
        passed_s = 0.0
        for part in whole.finished.parts:
            begins, passed_s = start + round(passed_s * 1e9), passed_s + part.seconds
            if part.seconds < 0:
                continue
            made.append(
                ReadableSpan(
                    part.name,
                    SpanContext(
                        context.trace_id,
                        self._ids.generate_span_id(),
                        is_remote=False,
                        trace_flags=context.trace_flags,
                        trace_state=context.trace_state,
                    ),
                    context,
                    whole.resource,
                    {PART: part.name, PART_MS: part.seconds * 1000, **part.about},
                    kind=SpanKind.INTERNAL,
                    start_time=begins,
                    end_time=start + round(passed_s * 1e9),
                    instrumentation_scope=SCOPE,
                )
            )
        return made

    def shutdown(self) -> None:
        """Give up what is being sent; may be said twice."""
        exporter, self._exporter = self._exporter, _Gone()
        exporter.shutdown()


class _Gone(SpanExporter):
    """What stands in for an exporter that was shut down."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        return None


class Otlp:
    """Spans to one collector; see wire.tracing.Tracing."""

    def __init__(self, choice: Choice, service: str) -> None:
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
        sampler = None
        if choice.sample is not None:
            sampler = ParentBased(TraceIdRatioBased(choice.sample))
        provider = TracerProvider(
            sampler=sampler, resource=Resource.create(named), shutdown_on_exit=False
        )
        endpoint = choice.endpoint.rstrip("/") + PATH if choice.endpoint else None
        exporter = OTLPSpanExporter(endpoint, timeout=choice.send_max_s)
        logging.getLogger(LIBRARY).setLevel(logging.ERROR)
        logging.getLogger(OTLPSpanExporter.__module__).setLevel(logging.CRITICAL)
        self._ids, self._sampler = provider.id_generator, provider.sampler
        self._resource = provider.resource
        self._send_max_s = choice.send_max_s
        self._queue_max = choice.queue_max
        self._exporter = _Apart(exporter, self._ids)
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=choice.queue_max,
            max_export_batch_size=min(BATCH_MAX, choice.queue_max),
            schedule_delay_millis=DELAY_MS,
        )
        self._propagator = TraceContextTextMapPropagator()
        self._given = self._dropped = 0
        self._closed = False

    def begin(self, headers: Mapping[str, str]) -> _Begun:
        """Take up the trace that `headers` names, else begin one; the sampler decides on new ones."""
        parent, inherited = None, None
        if "traceparent" in headers:
            inherited = self._propagator.extract(headers)
            given = trace.get_current_span(inherited).get_span_context()
            parent = given if given.is_valid else None
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        decision = self._sampler.should_sample(
            inherited if parent is not None else None, trace_id, "", SpanKind.SERVER
        )
        sampled = decision.decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT
        context = SpanContext(
            trace_id,
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=TraceFlags(flags),
            trace_state=decision.trace_state or (parent.trace_state if parent else None),
        )
        return _Begun(context, parent)

    def end(self, begun: Begun, finished: Finished) -> None:
        """Hand a request over; dropped where too many wait to be sent."""
        if not begun.sampled or not isinstance(begun, _Begun) or self._closed:
            return
        seconds = finished.seconds
        if seconds is None:
            seconds = sum(part.seconds for part in finished.parts)
        about = dict(finished.about)
        below = sum(part.seconds for part in finished.parts if part.seconds < 0)
        if below:
            about[OTHER_MS] = below * 1000
        whole = _Whole(
            finished.name,
            begun.context,
            begun.parent,
            self._resource,
            about,
            kind=KINDS[finished.side],
            status=Status(StatusCode.ERROR if finished.failed else StatusCode.UNSET),
            start_time=finished.start_ns,
            end_time=finished.start_ns + round(seconds * 1e9),
            instrumentation_scope=SCOPE,
        )
        whole.finished = finished
        if self._given - self._dropped - self._exporter.taken >= self._queue_max:
            self._dropped += 1  # the oldest makes room
        self._given += 1
        self._processor.on_end(whole)

    def lost(self) -> int:
        """How many requests were dropped or could not be sent."""
        return self._dropped + self._exporter.failed

    def close(self) -> None:
        """Send what waits for at most `send_max_s`, and give the rest up."""
        self._closed = True
        sending = threading.Thread(target=self._processor.shutdown, daemon=True)
        sending.start()
        sending.join(self._send_max_s)
        self._exporter.shutdown()
        sending.join(self._send_max_s)
