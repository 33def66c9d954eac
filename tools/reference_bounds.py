"""The page of limits: settings and constants that bound something.

A constant of the code whose name ends in `_MAX` must stand here; a test looks.
"""

import importlib

from reference_settings import default_of, fields, policy_toml, summary

from tailrace.apps.review.settings import BoxSettings

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
