"""Writes the generated parts of docs/reference from the code: `make docs`.

The code is the source; a page that differs from what this file would write fails a test. Text outside
the marked blocks is written by hand and left alone.
"""

import argparse
import importlib
import json
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tailrace.apps.api.app import dialects as all_dialects
from tailrace.apps.api.settings import AnyOffer, ApiSettings
from tailrace.apps.books.settings import BooksSettings
from tailrace.apps.review.app import event_stream, review_app
from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.settings import BoxSettings, NaiveSettings
from tailrace.apps.review.topics import load_topics
from tailrace.core.clock import MonotonicClock
from tailrace.core.errors import InputError, TailraceError
from tailrace.core.estimate import ServiceTime
from tailrace.models.fake import FakeCrossEncoder
from tailrace.models.threads import InferenceThreads
from tailrace.serve.catalogue import Catalogue
from tailrace.serve.dialect import Front, Limits
from tailrace.serve.dialects.cohere import Cohere
from tailrace.serve.dialects.infinity import Infinity
from tailrace.serve.dialects.jina import Jina
from tailrace.serve.dialects.openai import OpenAI
from tailrace.serve.dialects.tei import Tei
from tailrace.serve.keys import Keys
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.problems import STATUS
from tailrace.serve.remote_settings import AdaptiveSettings, RemoteOffer, TimeoutSettings
from tailrace.serve.settings import DoorSettings, PolicySettings
from tailrace.wire.problem import TYPE_PREFIX

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
HOWTO_REMOTE = ROOT / "docs" / "howto" / "remote.md"

TYPES = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
    SecretStr: "text",
    Path: "path",
}
SIGNS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}

BOUNDING_SETTINGS = (
    "server.body_max_bytes",
    "server.streams_max",
    "server.drain_grace_s",
    "review.text_max_chars",
    "lane.slots",
    "lane.waiting_max",
    "lane.run_max_s",
    "lane.batch.items_max",
    "lane.batch.window_ms",
    "naive.memory_limit_mib",
    "naive.in_flight_max",
    "cache.entries_max",
    "tickets.keep_s",
    "tickets.kept_max",
    "tracing.queue_max",
    "tracing.send_max_s",
)
"""Settings that bound something, as paths of the configuration file."""

BOUNDING_CONSTANTS = (
    ("tailrace.apps.review.topics", "TOPICS_MAX", "topics in a topics file"),
    ("tailrace.apps.review.topics", "TOPIC_CHARS_MAX", "characters of one topic"),
    ("tailrace.apps.review.crowd", "CALLERS_MAX", "callers in one `POST /api/crowd`"),
    ("tailrace.apps.review.crowd", "CROWDS_MAX", "crowds on their way at once"),
    (
        "tailrace.policies.rate_limit",
        "CALLER_CHARS_MAX",
        "characters of a caller's name that count",
    ),
    ("tailrace.serve.arrival", "HEADER_BYTES_MAX", "bytes of a request's headers"),
    ("tailrace.wire.otlp", "BATCH_MAX", "requests whose spans are sent together"),
    ("tailrace.serve.foresight", "TEXTS_SEEN_MAX", "texts that are known to have been read"),
    ("tailrace.serve.body", "BODY_S_MAX", "seconds in which a body must have come"),
    ("tailrace.models.tokens", "TOKENIZERS_MAX", "vocabularies kept for models that read the same"),
    ("tailrace.serve.metrics", "UNCOUNTED_MAX", "events that wait to be counted"),
    ("tailrace.core.outlook", "PLANNED_MAX", "waiting work that estimates plan run by run"),
    (
        "tailrace.core.outlook",
        "PLANNED_PADDED_MAX",
        "the same where runs are padded to the longest",
    ),
    ("tailrace.core.batch", "LOOKAHEAD", "places down the line that company is looked for"),
    ("tailrace.core.line", "CALLERS_REMEMBERED", "callers whose share of a lane is kept in mind"),
    ("tailrace.serve.served", "INLINE_CHARS", "characters tokenised on the event loop"),
    ("tailrace.apps.books.reranking", "TOKENS_MAX", "tokens of a document that are reread"),
    ("tailrace.apps.books.baseline", "BATCH_TEXTS", "texts in one request to a baseline's API"),
    ("tailrace.apps.books.baseline", "TRIES_MAX", "times one such request is made"),
    ("tailrace.apps.books.baseline", "PAUSE_S_MAX", "seconds of pause that end the comparison"),
    (
        "tailrace.latency.pool",
        "CONNECTIONS_MAX",
        "connections of the measuring client to one origin",
    ),
    ("tailrace.simulate.levers", "FACTOR_MAX", "times a what-if may make something faster or more"),
    ("tailrace.simulate.levers", "COUNT_MAX", "servers, seats or retries in a what-if"),
    (
        "tailrace.simulate.plan",
        "WAITING_MAX",
        "waiting in a replay of a line without a known bound",
    ),
    ("tailrace.simulate.forecast", "REQUESTS_MAX", "requests replayed for one prediction"),
    (
        "tailrace.bench.bottleneck.server",
        "BODY_BYTES_MAX",
        "bytes of a request to a place of `tailrace demo bottleneck`",
    ),
    (
        "tailrace.bench.bottleneck.way",
        "HELD_MAX",
        "bytes on their way to such a place, in one direction, before reading stops",
    ),
    ("tailrace.latency.prediction", "KEPT_MAX", "kept predictions that past errors are taken from"),
    ("tailrace.latency.http1", "HEAD_BYTES_MAX", "bytes of the head of an answer that is measured"),
    ("tailrace.latency.http1", "BODY_BYTES_MAX", "bytes of its body"),
    ("tailrace.latency.http1", "CHUNKS_MAX", "pieces of its body whose moments are kept"),
    ("tailrace.latency.probing", "REQUESTS_MAX", "requests of one `tailrace probe`"),
    ("tailrace.latency.watch.history", "POINTS_MAX", "lines of the history of a watch"),
    (
        "tailrace.latency.watch.changes",
        "WINDOW_MAX",
        "latest points in which changes are looked for",
    ),
    ("tailrace.latency.watch.rounds", "RUNS_MAX", "runs of a watch whose rows are kept (`--keep`)"),
    ("tailrace.latency.watch.webhook", "TRIES_MAX", "times a webhook is told the same"),
    ("tailrace.latency.measure", "SAID_CHARS_MAX", "characters of a server's words kept in a row"),
    ("tailrace.latency.bootstrap", "BLOCKS_MAX", "blocks in one resample of a run"),
    ("tailrace.latency.bootstrap", "DRAWS_MAX", "rows drawn in all resamples of a run's tail"),
    ("tailrace.bench.crowd", "CROWD_MAX", "callers in one `tailrace burst`"),
    (
        "tailrace.bench.crowd",
        "POLL_S",
        "seconds between two looks at a ticket, by `tailrace burst`",
    ),
    (
        "tailrace.serve.events_stream",
        "EVERY_S",
        "seconds between two events of one stream, at least",
    ),
    ("tailrace.serve.events_stream", "HEARTBEAT_S", "seconds of silence before a heartbeat"),
    ("tailrace.serve.runner", "BACKLOG", "connections that wait to be accepted"),
    ("tailrace.core.returns", "HORIZON_S", "seconds ahead that a return is booked, at most"),
    ("tailrace.core.returns", "PACE_MARGIN", "how much slower than measured returns are planned"),
    ("tailrace.core.estimate", "RESIDUAL_FLOOR", "share of its estimate a late run still needs"),
    ("tailrace.serve.doors", "FINE_STEP_S", "grid of `retry-after-ms`, in seconds"),
    ("tailrace.apps.review.box", "FAILED_RUNS_UNREADY", "failed runs in a row until not ready"),
    (
        "tailrace.apps.review.naive",
        "CROWD",
        "naive callers that are too many for a limit chosen at start",
    ),
    (
        "tailrace.apps.review.naive",
        "FIT_SHARE",
        "share of that crowd's memory at which the limit is put",
    ),
    (
        "tailrace.apps.review.naive",
        "MEASURE_S_MAX",
        "seconds until a child that cannot be measured goes without",
    ),
    ("tailrace.models.child", "LOOK_EVERY_S", "seconds between two looks at a busy child's memory"),
    (
        "tailrace.models.child",
        "BACKOFF_S",
        "pauses before a child that never got ready is tried again",
    ),
    (
        "tailrace.models.session_processes",
        "BACKOFF_S",
        "pauses before a model's process that died without an answer is started again",
    ),
    (
        "tailrace.models.session_processes",
        "START_S_MAX",
        "seconds that a run waits for a process, and that one may take to open the model",
    ),
    (
        "tailrace.models.session_processes",
        "BAD_STARTS",
        "failed starts in a row after which runs no longer wait for a process",
    ),
    ("tailrace.cache.sqlite", "PENDING_MAX", "answers that wait to be written to the cache's file"),
    ("tailrace.cache.sqlite", "BUSY_S", "seconds that its writer waits for another process"),
    ("tailrace.models.upstream", "ANSWER_BYTES_MAX", "bytes of an upstream's answer read whole"),
    ("tailrace.models.upstream", "SAID_CHARS_MAX", "characters of an upstream's words in an error"),
    (
        "tailrace.models.upstream",
        "HUNG_UP_S_MAX",
        "seconds within which a request on an old connection that breaks is sent once more",
    ),
    ("tailrace.models.upstream", "PAUSE_S", "seconds of pause after a refusal that names none"),
    ("tailrace.models.upstream", "PAUSE_S_MAX", "seconds of pause that an upstream is believed"),
    ("tailrace.models.remote", "AHEAD", "pieces of a stream read before the caller took them"),
    ("tailrace.search.text", "QUERY_CHARS_MAX", "characters of a search query that are read"),
    ("tailrace.search.text", "TERM_CHARS_MAX", "characters of one term of the keyword index"),
    (
        "tailrace.serve.background",
        "RUNS_WAITING_MAX",
        "runs of a model in the background that may wait",
    ),
    ("tailrace.search.hybrid", "WINDOW", "documents that each leg of a search gives"),
    (
        "tailrace.search.hybrid",
        "HEAD_START_S",
        "seconds that the keyword leg lets a query's embedding begin",
    ),
    ("tailrace.search.ingest", "BATCH_DOCUMENTS", "documents that an ingest writes together"),
    ("tailrace.search.gate", "LOSS_MAX", "recall@10 that a new embedding model may lose"),
    (
        "tailrace.search.gate",
        "QUERIES_MIN",
        "labelled queries below which the gate decides nothing",
    ),
    (
        "tailrace.search.migrate",
        "STALLED_MAX",
        "batches in a row that take no vector before a fill gives up",
    ),
    (
        "tailrace.search.quality",
        "DEPTH",
        "places of a ranking that `tailrace books quality` judges",
    ),
    ("tailrace.search.quality", "RESAMPLES", "drawings of its bootstrap"),
    ("tailrace.search.read_rows", "SAID_CHARS_MAX", "characters of a bad row that are kept"),
    ("tailrace.apps.books.posting", "TRIES_MAX", "tries of one batch at a service that is full"),
    ("tailrace.apps.books.posting", "ANSWER_S", "seconds that a service may take over one batch"),
    ("tailrace.wire.sse", "EVENT_BYTES_MAX", "bytes of one event of a language model's stream"),
    (
        "tailrace.apps.books.turn.fields",
        "TEXT_CHARS_MAX",
        "characters of a language model's answer",
    ),
    ("tailrace.apps.books.turn.spec", "MESSAGES_MAX", "messages of one conversation"),
    ("tailrace.apps.books.turn.spec", "MESSAGE_CHARS_MAX", "characters of one message"),
    (
        "tailrace.apps.books.turn.spec",
        "QUERY_CHARS_MAX",
        "characters of a query made out of a conversation",
    ),
    (
        "tailrace.apps.books.turn.spec",
        "CATEGORIES_TOLD_MAX",
        "categories that the language model is told of",
    ),
    ("tailrace.apps.books.turn.reasons", "CARDS_MAX", "cards of one turn"),
    ("tailrace.apps.books.turn.reasons", "SHORT_CHARS_MAX", "characters of a short reason"),
    ("tailrace.apps.books.turn.reasons", "LONG_CHARS_MAX", "characters of a long reason"),
    (
        "tailrace.apps.books.turn.reasons",
        "TOLD_CHARS_MAX",
        "characters of a description that the language model is told",
    ),
    ("tailrace.apps.books.turn.turn", "SPEC_TOKENS_MAX", "tokens of a spec"),
    ("tailrace.apps.books.turn.turn", "REASON_TOKENS_MAX", "tokens of one card's reasons"),
    (
        "tailrace.apps.books.turn.generator",
        "TRIES",
        "tries of one call, the second only before the first piece",
    ),
    (
        "tailrace.apps.books.cover.desk",
        "ARRIVING_MAX",
        "pictures on their way in beyond those that have a seat",
    ),
    ("tailrace.models.picture", "SIDE_MAX", "pixels of a cover's longer side that are looked at"),
    ("tailrace.models.picture", "ASPECT_MAX", "times its width that a cover may be long"),
    ("tailrace.models.text_boxes", "LINES_MAX", "lines of a cover that are read"),
    ("tailrace.models.tesseract", "SAID_CHARS_MAX", "characters of tesseract's words in an error"),
    ("tailrace.apps.books.cover.match", "WORDS_MAX", "words of a cover that are looked up"),
    ("tailrace.apps.books.cover.match", "SPAN_MAX", "words of a title on a cover"),
    (
        "tailrace.apps.books.cover.match",
        "CANDIDATES_MAX",
        "books that one line of a cover proposes",
    ),
    ("tailrace.apps.books.cover.match", "NEAR_MAX", "books told where no book is meant for sure"),
    ("tailrace.apps.books.cover.vlm", "TOKENS_MAX", "tokens of a model's answer about a cover"),
    (
        "tailrace.apps.books.cover.vlm",
        "TEXT_CHARS_MAX",
        "characters of one field of it that are looked at",
    ),
    ("tailrace.cli.probe_report", "NOTES_MAX", "different errors that a probe spells out"),
    ("tailrace.cli.books_ingest", "SHOWN_MAX", "bad rows told on the terminal"),
    ("tailrace.search.rows", "LIST_ITEMS_MAX", "keywords or aliases of one document"),
    ("tailrace.stores.port", "TERMS_MAX", "terms of one search query that are looked up"),
    ("tailrace.stores.port", "MATCHED_MAX", "best keyword hits that tell which terms stand where"),
    ("tailrace.stores.port", "SPACES_REMEMBERED", "spaces whose fingerprints are kept in mind"),
    ("tailrace.stores.feed", "IDS_KEPT_MAX", "ids of documents kept in mind by the vector leg"),
    ("tailrace.stores.batches", "ID_CHARS_MAX", "characters of a document's id"),
    ("tailrace.stores.batches", "FIELD_CHARS_MAX", "characters of one field of a document"),
    (
        "tailrace.stores.postgres_database",
        "CONNECTIONS_MAX",
        "connections to PostgreSQL that are kept open",
    ),
    ("tailrace.stores.postgres_database", "CONNECT_S", "seconds to connect to PostgreSQL"),
    (
        "tailrace.stores.postgres_terms",
        "CANDIDATES_MAX",
        "documents ranked for one keyword query in PostgreSQL",
    ),
    (
        "tailrace.stores.postgres_vectors",
        "EXACT_ROWS",
        "matching rows up to which pgvector is searched exactly",
    ),
    (
        "tailrace.stores.postgres_vectors",
        "SCAN_TUPLES_MAX",
        "rows that one search of an HNSW index visits",
    ),
    ("tailrace.stores.sketch", "SKETCH_FROM", "vectors from which a scan goes by the 1-bit sketch"),
    (
        "tailrace.stores.sketch",
        "RESCORED_MIN",
        "vectors compared in full after the sketch, at least",
    ),
    (
        "tailrace.stores.snapshot",
        "SNAPSHOT_FROM",
        "vectors from which the matrix is mapped from a file",
    ),
    (
        "tailrace.stores.sqlite_terms",
        "POSTINGS_MAX",
        "documents that the terms of one keyword query may hit, frequent terms left out",
    ),
    ("tailrace.stores.sqlite_file", "READERS_MAX", "connections of the embedded store for readers"),
    ("tailrace.stores.sqlite_file", "BUSY_S", "seconds that one process waits for another's write"),
    ("tailrace.bench.scenario", "CASES_MAX", "cases of one scenario's grid"),
    ("tailrace.bench.scenario", "SECONDS_MAX", "seconds of one block of a case"),
    ("tailrace.bench.scenario", "REQUESTS_MAX", "requests of one block"),
    ("tailrace.bench.scenario", "RATE_MAX", "requests a second that a scenario may offer"),
    ("tailrace.bench.scenario", "CLIENTS_MAX", "clients of a closed loop, requests of a burst"),
    ("tailrace.bench.scenario", "ROUNDS_MAX", "rounds in which cases take turns"),
    ("tailrace.bench.generator", "IN_FLIGHT_MAX", "requests of a run on their way at once"),
    ("tailrace.bench.generator", "FAILED_MAX", "failures before the first answer that end a run"),
    ("tailrace.bench.lag", "LOOKS_MAX", "looks at the sender's own loop that are kept"),
    ("tailrace.latency.imports.recognise", "FILE_BYTES_MAX", "bytes of another tool's result file"),
    ("tailrace.latency.report.drawings", "DOTS_MAX", "requests drawn as dots in a report"),
    ("tailrace.latency.report.drawings", "STEPS_MAX", "steps of a distribution's line in a report"),
    ("tailrace.latency.runs.folder", "ROWS_MAX", "rows of one run"),
    ("tailrace.latency.runs.folder", "LISTED_MAX", "runs in one `tailrace runs`"),
    ("tailrace.latency.runs.folder", "DEPTH_MAX", "folders deep that `tailrace runs` looks"),
    ("tailrace.models.chunks", "CHUNK_TOKENS", "padded tokens in one sub-batch"),
    ("tailrace.models.threads", "NICE", "niceness of inference threads"),
)
"""Bounds that are constants of the code: module, name, what they bound."""


# -- configuration ----------------------------------------------------------------------------


def fields(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting below `model` that holds a value, by its path in the file."""
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            yield from fields(below, f"{path}{name}.")
        else:
            yield f"{path}{name}", field


def tables(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table of the file, by its path; the doors' common shape only once."""
    yield path, model
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            yield from tables(below, f"{path}.{name}" if path else name)


def policies() -> list[type[BaseModel]]:
    """The kinds of policy, in the order of the union."""
    union = get_args(PolicySettings)[0]
    return list(get_args(union))


def kind_of(field: FieldInfo) -> str:
    """The type of a setting, in words, with its bounds."""
    words = type_words(field.annotation)
    bounds = [
        f"{word} {getattr(limit, sign):g}"
        for limit in field.metadata
        for sign, word in SIGNS.items()
        if getattr(limit, sign, None) is not None
    ]
    return ", ".join([words, *bounds])


def type_words(annotation: Any) -> str:
    """A Python type in the words of the page."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return type_words(get_args(annotation)[0])
    if origin is Literal:
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in get_args(annotation))
    if origin in {Union, types.UnionType}:
        some = [a for a in get_args(annotation) if a is not type(None)]
        if len(some) == 1:
            return type_words(some[0])
        return "whole number or table" if int in some else "policy"
    if origin is tuple:
        of = get_args(annotation)[0]
        return f"list of {'texts' if of is str else 'models' if of == AnyOffer else 'policies'}"
    return TYPES[annotation]


def default_of(field: FieldInfo, given: Any = None) -> str:
    """The default of a setting, or the one `given`, as TOML where it has one."""
    if given is None and field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True) if given is None else given
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        return "`[]`" if not value else "see below"
    return f"`{json.dumps(value)}`"


def setting_rows(model: type[BaseModel], table: BaseModel | None = None) -> list[str]:
    """One row per value of one table, whose defaults are those of `table` if it is given."""
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            continue
        if not field.description and name != "kind":
            raise SystemExit(f"{model.__name__}.{name} has no docstring: say what it is for")
        meaning = " ".join((field.description or "Which policy this is.").split())
        rows.append(
            f"| `{name}` | {kind_of(field)} | {default_of(field, getattr(table, name, None))} | {meaning} |"
        )
    return rows


def policy_toml(policy: BaseModel) -> str:
    """One policy as it stands in a file, its own defaults left out."""
    values = policy.model_dump(exclude_defaults=True)
    inside = ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    return f"{{ {inside} }}"


def summary(model: type[BaseModel]) -> str:
    """The first paragraph of a class's docstring."""
    return " ".join((model.__doc__ or "").split("\n\n", maxsplit=1)[0].split())


def configuration() -> str:
    """The whole of configuration.md."""
    lines = [
        "# Configuration",
        "",
        "Written by `make docs` from the settings in the code; do not edit.",
        "",
        "A TOML file, given with `tailrace serve --config FILE`. Every setting has a default, so a file",
        "holds only what differs. Unknown names are errors; all mistakes are reported at once, with their",
        "paths. `tailrace serve --check` prints what would be used and leaves.",
        "",
        "Order of precedence: command line, environment, file, default. The environment spells a path",
        "with two underscores: `TAILRACE__LANE__BATCH__WINDOW_MS=10` is `lane.batch.window_ms = 10`. A",
        "value is read as JSON where it is JSON, else as text.",
        "",
        "[configs/review.toml](../../configs/review.toml) spells the defaults out.",
    ]
    lines += table_sections(BoxSettings)
    lines += ["", "## [doors.limited], [doors.batched], [doors.queue]", ""]
    lines += [
        summary(DoorSettings),
        "",
        *setting_rows(DoorSettings),
        "",
        "The defaults:",
        "",
        "```toml",
    ]
    doors = BoxSettings().doors
    for name in type(doors).model_fields:
        door = getattr(doors, name)
        lines += [f"[doors.{name}]", f"batch = {json.dumps(door.batch)}", "policies = ["]
        lines += [f"    {policy_toml(policy)}," for policy in door.policies]
        lines += ["]", ""]
    lines[-1] = "```"
    lines += ["", "## Policies", ""]
    lines += [
        "A door asks all of its policies; all must agree, and the earliest latest start counts."
    ]
    for model in policies():
        (kind,) = get_args(model.model_fields["kind"].annotation)
        lines += ["", f"### {kind}", "", summary(model), "", *setting_rows(model)]
    lines += model_server()
    lines += book_service()
    return "\n".join(lines) + "\n"


def table_sections(
    settings: type[BaseModel], under: str = "", filled: BaseModel | None = None
) -> list[str]:
    """A section for every table of a file, the doors left out; `filled` holds other defaults."""
    lines: list[str] = []
    for path, model in tables(settings):
        own = [f for f in model.model_fields.values() if not _is_table(f)]
        if not own or model is DoorSettings or not path:
            continue
        rows = setting_rows(model, getattr(filled, path, None))
        lines += ["", f"## [{under}{path}]", "", summary(model), "", *rows]
    return lines


def model_server() -> list[str]:
    """The settings of `tailrace api`."""
    return [
        "",
        "# The model server",
        "",
        "The file of `tailrace api --config FILE`; precedence and environment are as above, `--check` too.",
        "[configs/api.toml](../../configs/api.toml) spells the defaults out.",
        "",
        "## At the top of the file",
        "",
        *setting_rows(ApiSettings),
        "",
        "## [[models]]",
        "",
        summary(ModelOffer),
        "",
        *setting_rows(ModelOffer),
        *table_sections(ModelOffer, "models."),
        "",
        "## [models.door]",
        "",
        "As the doors of the review box: `batch` and `policies`.",
        *table_sections(ApiSettings, filled=ApiSettings()),
    ]


def book_service() -> list[str]:
    """The settings of `tailrace books`."""
    return [
        "",
        "# The book service",
        "",
        "The file of `tailrace books serve --config FILE` and of the other `tailrace books` verbs;",
        "precedence and environment are as above, `--check` too.",
        "[configs/books.toml](../../configs/books.toml) spells the defaults out.",
        "",
        "## At the top of its file",
        "",
        *setting_rows(BooksSettings),
        *table_sections(BooksSettings),
        "",
        "`model.door`, `search.door` and `cover.door` are as the doors of the review box.",
    ]


def remote_settings() -> str:
    """The settings of models elsewhere."""
    lines = []
    for heading, model in (
        ('`[[models]]` with `kind = "remote-..."`', RemoteOffer),
        ("`timeouts`", TimeoutSettings),
        ("`slots`, where they are found", AdaptiveSettings),
    ):
        lines += [f"### {heading}", "", summary(model), "", *setting_rows(model), ""]
    return "\n".join(lines).strip()


def _is_table(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


# -- HTTP -------------------------------------------------------------------------------------


def box_for_looking() -> ReviewBox:
    """A box that is never started: to ask it for its metrics and its routes."""
    settings = BoxSettings(naive=NaiveSettings(enabled=False))
    threads = InferenceThreads(1)
    threads.close()
    return ReviewBox(
        settings,
        FakeCrossEncoder(),
        threads,
        load_topics(),
        clock=MonotonicClock(),
        service=ServiceTime(),
    )


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document of the box."""
    box = box_for_looking()
    app: Any = review_app(box, event_stream(box))
    inner: Any = app
    while not hasattr(inner, "openapi"):
        inner = inner._app  # noqa: SLF001 - the outer layers hide FastAPI
    document: dict[str, Any] = inner.openapi()
    return document


def front_for_looking() -> Front:
    """What the dialects need to be asked for their routes and their errors: no models."""
    return Front(MonotonicClock(), Catalogue.of([]), Keys(), Limits(1, 1, 1, 1))


@cache
def api_openapi() -> dict[str, Any]:
    """The OpenAPI document of the dialects."""
    app = FastAPI()
    for dialect in all_dialects(front_for_looking()):
        app.include_router(dialect.router)
    return app.openapi()


def dialect_errors() -> str:
    """What every code is in every dialect."""
    front = front_for_looking()
    dialects = {"OpenAI": OpenAI, "TEI": Tei, "Cohere": Cohere, "Jina": Jina, "Infinity": Infinity}
    rows = [f"| `code` | {' | '.join(dialects)} |", "|---" * (len(dialects) + 1) + "|"]
    names = {"OpenAI": ("error", "type"), "TEI": ("error_type",)}
    inside = {"door-closed", "ticket-unknown", "ticket-expired", "ticket-dropped"}
    for code in sorted(set(STATUS) - inside):
        cells = []
        for name, dialect in dialects.items():
            status = STATUS[code][0]
            base = InputError if status in {400, 408, 413, 415, 422} else TailraceError
            made = dialect(front).on_error(type("Any", (base,), {"code": code})("why"))
            said = json.loads(made.body)
            for step in names.get(name, ()):
                said = said[step]
            cells.append(f"{made.status} `{said}`" if name in names else str(made.status))
        rows.append(f"| `{code}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def entries(paths: dict[str, Any] | None = None) -> str:
    """The table of entries, from the OpenAPI document."""
    rows = ["| entry | what it does |", "|---|---|"]
    for path, methods in (paths or openapi()["paths"]).items():
        for method, about in methods.items():
            rows.append(f"| `{method.upper()} {path}` | {about['summary']} |")
    return "\n".join(rows)


def errors() -> str:
    """The table of error codes, from the one table that gives them a status."""
    rows = ["| status | `code` | title |", "|---|---|---|"]
    for code, (status, title) in sorted(STATUS.items(), key=lambda item: (item[1][0], item[0])):
        rows.append(f"| {status} | `{code}` | {title} |")
    return "\n".join([f"`type` is `{TYPE_PREFIX}` and the code.", "", *rows])


# -- metrics and limits -----------------------------------------------------------------------


@cache
def metric_families() -> list[Metric]:
    """Every family that the box exports."""
    return list(box_for_looking().metrics.registry.collect())


def label_values(family: Metric) -> dict[str, list[str]]:
    """The labels of a family, each with the values that exist from the start."""
    values: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                values.setdefault(label, {})[value] = None
    return {label: list(known) for label, known in values.items()}


def metrics() -> str:
    """The table of metrics."""
    rows = ["| metric | type | labels | what it counts |", "|---|---|---|---|"]
    for family in metric_families():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = "<br>".join(
            f"`{label}`: {', '.join(values)}" for label, values in label_values(family).items()
        )
        rows.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(rows)


def limits() -> str:
    """The two tables of bounds."""
    known = dict(fields(BoxSettings))
    rows = ["| setting | default | bounds |", "|---|---|---|"]
    for path in BOUNDING_SETTINGS:
        field = known[path]
        meaning = " ".join((field.description or "").split())
        rows.append(f"| `{path}` | {default_of(field)} | {meaning} |")
    doors = BoxSettings().doors
    for name in type(doors).model_fields:
        door = getattr(doors, name)
        rows += [
            f"| `doors.{name}.policies` | `{policy_toml(policy)}` | {summary(type(policy))} |"
            for policy in door.policies
            if policy.model_dump(exclude_defaults=True, exclude={"kind"})
        ]
    rows += ["", "Constants of the code:", "", "| constant | value | bounds |", "|---|---|---|"]
    for module, name, meaning in BOUNDING_CONSTANTS:
        value = getattr(importlib.import_module(module), name)
        shown = ", ".join(str(v) for v in value) if isinstance(value, tuple) else value
        rows.append(f"| `{module.removeprefix('tailrace.')}.{name}` | {shown} | {meaning} |")
    return "\n".join(rows)


# -- pages ------------------------------------------------------------------------------------


def block(text: str, name: str, content: str) -> str:
    """`text` with the content of one marked block replaced."""
    begin, end = f"<!-- begin {name}: written by make docs -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"the page has no block {name}: {begin} ... {end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{content}\n\n{end}{rest.split(end)[1]}"


def pages() -> dict[Path, str]:
    """What every generated page should hold, by path."""
    http = (REFERENCE / "http.md").read_text(encoding="utf-8")
    api = (REFERENCE / "api.md").read_text(encoding="utf-8")
    own = {p: about for p, about in api_openapi()["paths"].items() if not p.startswith("/tei/")}
    api = block(block(api, "entries", entries(own)), "errors", dialect_errors())
    return {
        REFERENCE / "api.md": api,
        REFERENCE / "configuration.md": configuration(),
        REFERENCE / "http.md": block(block(http, "entries", entries()), "errors", errors()),
        HOWTO_REMOTE: block(
            HOWTO_REMOTE.read_text(encoding="utf-8"), "settings", remote_settings()
        ),
        REFERENCE / "metrics.md": block(
            (REFERENCE / "metrics.md").read_text(encoding="utf-8"), "metrics", metrics()
        ),
        REFERENCE / "limits.md": block(
            (REFERENCE / "limits.md").read_text(encoding="utf-8"), "limits", limits()
        ),
    }


def main() -> int:
    """Write the pages, or with --check say which differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page differs"
    )
    check = parser.parse_args().check
    stale = []
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
