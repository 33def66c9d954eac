"""Entries, errors and metrics, from applications that are built and never started."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from tailrace.apps.api.app import dialects as all_dialects
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
from tailrace.serve.problems import STATUS
from tailrace.wire.problem import TYPE_PREFIX


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
