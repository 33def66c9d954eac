"""Who declares which time, in which unit, from which clock start, and what is inside what: a table.

Grows by a row when a provider adds a field. Golden answers per family are in tests/data/declared. Nothing
is read here.
"""

from dataclasses import dataclass
from typing import Literal

S = 1e9
MS = 1e6
US = 1e3
NS = 1.0
CUT = 1_000_000
"""A whole number of milliseconds: up to one is lost, or gained by rounding."""
MICRO = 1_000
"""Three decimals of a millisecond."""

UNTOLD_SERVER = "the server's whole time; queue and inference not told apart"

Place = Literal["header", "body", "server-timing"]


@dataclass(frozen=True)
class Field:
    """One declared figure."""

    name: str
    """Header in lower case, path in the body, or entry of Server-Timing."""
    unit: float
    """Nanoseconds in one of its units."""
    part: str | None = None
    """Which part it is (fields of one part add up); None where it is none, but told."""
    starts: str = ""
    """When its clock starts, for people; empty where that is plain."""
    inside: str | None = None
    """The field that it is a piece of."""
    alone: str | None = None
    """Which part it stands for where the family tells nothing finer."""
    averaged: bool = False
    """Whether it is an average over the inputs of one request."""
    holds_queue: bool = False
    """A total from which the queue is what the other fields leave."""
    resolution_ns: int = 0


@dataclass(frozen=True)
class Family:
    """The figures of one kind of server."""

    name: str
    place: Place
    fields: tuple[Field, ...]
    recognised_by: tuple[str, ...] = ()
    """Fields that are this family's alone; all of them where empty."""
    doubt: str | None = None
    """The likely cause where its figures do not fit into the wait."""

    @property
    def signs(self) -> frozenset[str]:
        """One of these must be there for the family to count."""
        return frozenset(self.recognised_by or (f.name for f in self.fields))


def _stage(name: str, part: str) -> Field:
    return Field(name, MS, part, starts="the stamp before it", inside="total", resolution_ns=MICRO)


def _timed(prefix: str, unit: float, *, dash: str) -> tuple[Field, ...]:
    """Fireworks' figures, as headers and in the body."""

    def field(words: str, part: str | None, inside: str | None, alone: str | None = None) -> Field:
        name = prefix + words.replace(" ", dash)
        whole = None if inside is None else prefix + inside.replace(" ", dash)
        return Field(name, unit, part, inside=whole, alone=alone, starts="the stage before it")

    whole = "server processing time"
    return (
        field("tokenizer queue duration", "queue", whole),
        field("tokenizer duration", "tokenize", whole),
        field("prefill queue duration", "queue", whole),
        field("prefill duration", "prefill", whole),
        field("generation queue duration", None, whole),
        field("generation duration", "generate", whole),
        field("server time to first token", None, whole, alone="prefill"),
        field("server processing time", None, None, alone="infer"),
    )


SEARCHED = ("embed", "keyword", "vector", "fuse", "rerank", "fetch", "upsert")
"""The stages of a search: its own work, as inference is a model's."""

FAMILIES: tuple[Family, ...] = (
    Family(
        "tailrace",
        "server-timing",
        (
            _stage("wait", "queue"),
            _stage("batch", "queue"),
            _stage("tokenize", "tokenize"),
            _stage("infer", "infer"),
            _stage("dns", "infer"),
            _stage("connect", "infer"),
            _stage("tls", "infer"),
            _stage("send", "infer"),
            _stage("first-byte", "infer"),
            _stage("transfer", "infer"),
            _stage("embed-wait", "queue"),
            *(_stage(name, "infer") for name in SEARCHED),
            Field("parse", MS, inside="total"),
            Field("cache", MS, inside="total"),
            Field("admit", MS, inside="total"),
            Field("post", MS, inside="total"),
            Field("handover", MS, inside="total"),
            Field("serialize", MS, inside="total"),
            Field("handle", MS, inside="total"),
            Field("total", MS, starts="the head of the request read"),
        ),
        recognised_by=("admit", "serialize", "handle"),
    ),
    Family(
        "groq",
        "body",
        (
            Field("usage.queue_time", S, "queue"),
            Field("usage.prompt_time", S, "prefill", inside="usage.total_time"),
            Field("usage.completion_time", S, "generate", inside="usage.total_time"),
            Field("usage.total_time", S, starts="after the queue, which is not inside"),
        ),
        recognised_by=("usage.queue_time", "usage.prompt_time"),
        doubt="queue_time is not inside total_time and may overlap with the way there",
    ),
    Family(
        "cerebras",
        "body",
        (
            Field("time_info.queue_time", S, "queue", inside="time_info.total_time"),
            Field("time_info.prompt_time", S, "prefill", inside="time_info.total_time"),
            Field("time_info.completion_time", S, "generate", inside="time_info.total_time"),
            Field("time_info.total_time", S, starts="the request's arrival"),
        ),
    ),
    Family("fireworks-body", "body", _timed("perf_metrics.", S, dash="-")),
    Family("fireworks", "header", _timed("fireworks-", S, dash="-")),
    Family(
        "vllm",
        "body",
        (
            Field("metrics.queue_time_ms", MS, "queue", starts="the request's arrival"),
            Field("metrics.time_to_first_token_ms", MS, "prefill", starts="its scheduling"),
            Field("metrics.generation_time_ms", MS, "generate", starts="the first token"),
            Field("metrics.mean_itl_ms", MS),
        ),
        recognised_by=("metrics.queue_time_ms", "metrics.time_to_first_token_ms"),
        doubt="this time to first token starts at scheduling; older builds count from the arrival",
    ),
    Family(
        "sglang",
        "body",
        (
            Field("meta_info.queue_time", S, "queue", inside="meta_info.e2e_latency"),
            Field("meta_info.e2e_latency", S, alone="infer", starts="the request's arrival"),
        ),
        doubt="the meaning of meta_info differs by version",
    ),
    Family(
        "llama.cpp",
        "body",
        (
            Field("timings.prompt_ms", MS, "prefill", starts="the slot taken: no queue is told"),
            Field("timings.predicted_ms", MS, "generate", starts="the prompt evaluated"),
        ),
    ),
    Family(
        "ollama",
        "body",
        (
            Field("load_duration", NS, "queue", inside="total_duration"),
            Field("prompt_eval_duration", NS, "prefill", inside="total_duration"),
            Field("eval_duration", NS, "generate", inside="total_duration"),
            Field("total_duration", NS, starts="the request's arrival", holds_queue=True),
        ),
        recognised_by=("total_duration",),
    ),
    Family(
        "localai",
        "body",
        (
            Field("usage.timing_prompt_processing", MS, "prefill"),
            Field("usage.timing_token_generation", MS, "generate"),
        ),
    ),
    Family(
        "openrouter",
        "body",
        (
            Field("data.moderation_latency", MS, "queue", inside="data.latency"),
            Field(
                "data.latency", MS, alone="prefill", starts="the request's arrival, to first token"
            ),
            Field("data.generation_time", MS, "generate", starts="the first token"),
        ),
        recognised_by=("data.latency",),
    ),
    Family("deepinfra", "body", (Field("inference_status.runtime_ms", MS, alone="infer"),)),
    Family(
        "bedrock-converse",
        "body",
        (Field("metrics.latencyMs", MS, alone="infer", resolution_ns=CUT),),
    ),
    Family(
        "tei",
        "header",
        (
            Field("x-tokenization-time", MS, "tokenize", averaged=True, resolution_ns=CUT),
            Field("x-queue-time", MS, "queue", averaged=True, resolution_ns=CUT),
            Field("x-inference-time", MS, "infer", averaged=True, resolution_ns=CUT),
            Field("x-total-time", MS, starts="the handler", resolution_ns=CUT),
        ),
        recognised_by=("x-tokenization-time",),
    ),
    Family(
        "tgi",
        "header",
        (
            Field("x-validation-time", MS, "tokenize", inside="x-total-time", resolution_ns=CUT),
            Field("x-queue-time", MS, "queue", inside="x-total-time", resolution_ns=CUT),
            Field("x-inference-time", MS, "infer", inside="x-total-time", resolution_ns=CUT),
            Field("x-time-per-token", MS),
            Field("x-total-time", MS, starts="the handler"),
        ),
        recognised_by=("x-validation-time",),
    ),
    Family(
        "bedrock",
        "header",
        (Field("x-amzn-bedrock-invocation-latency", MS, alone="infer", resolution_ns=CUT),),
    ),
    Family(
        "openai",
        "header",
        (
            Field(
                "openai-processing-ms",
                MS,
                alone="infer",
                starts="the request's arrival, to headers",
                resolution_ns=CUT,
            ),
        ),
    ),
    Family(
        "litellm",
        "header",
        (
            Field(
                "x-litellm-response-duration-ms", MS, alone="infer", starts="the gateway's arrival"
            ),
            Field("x-litellm-overhead-duration-ms", MS, inside="x-litellm-response-duration-ms"),
        ),
        doubt="the gateway's figure holds its own way to the model",
    ),
    Family(
        "mlflow",
        "header",
        (
            Field(
                "x-mlflow-gateway-duration-ms", MS, alone="infer", starts="the gateway's arrival"
            ),
            Field(
                "x-mlflow-gateway-overhead-duration-ms", MS, inside="x-mlflow-gateway-duration-ms"
            ),
        ),
        doubt="the gateway's figure holds its own way to the model",
    ),
    Family(
        "kong",
        "header",
        (
            Field(
                "x-kong-upstream-latency",
                MS,
                alone="infer",
                starts="sent upstream, to headers",
                resolution_ns=CUT,
            ),
            Field("x-kong-proxy-latency", MS, starts="the gateway's arrival", resolution_ns=CUT),
        ),
    ),
    Family(
        "envoy",
        "header",
        (
            Field(
                "x-envoy-upstream-service-time",
                MS,
                alone="infer",
                starts="sent upstream, to headers",
                resolution_ns=CUT,
            ),
        ),
    ),
    Family(
        "cloudfront",
        "server-timing",
        (
            Field("cdn-upstream-dns", MS, "net", resolution_ns=CUT),
            Field("cdn-upstream-connect", MS, "net", resolution_ns=CUT),
            Field(
                "cdn-upstream-fbl", MS, alone="infer", starts="sent to origin", resolution_ns=CUT
            ),
        ),
        doubt="first-byte latency holds the way from the edge to the origin",
    ),
    Family(
        "cloudflare",
        "server-timing",
        (
            Field("cfOrigin", MS, alone="infer", starts="sent to origin", resolution_ns=CUT),
            Field("cfEdge", MS, resolution_ns=CUT),
        ),
        doubt="the origin's time holds the way from the edge to it",
    ),
    Family(
        "google-frontend",
        "server-timing",
        (Field("gfet4t7", MS, alone="infer", resolution_ns=CUT),),
    ),
    Family(
        "server-timing",
        "server-timing",
        (Field("total", MS, alone="infer"), Field("app", MS, alone="infer")),
    ),
)
"""The finest first: the first family that tells anything of an answer becomes parts."""
