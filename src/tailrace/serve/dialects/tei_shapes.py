"""The small shapes of TEI's answers: error names, labels, timing headers. Knows no entries."""

from collections.abc import Sequence
from typing import Any

from tailrace import __version__
from tailrace.core.errors import InputError, TailraceError
from tailrace.serve.classifying import Classified, ServedClassifier
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.exchange import Exchange
from tailrace.serve.reranking import Scored, ServedReranker

DIRECTIONS = ("right", "Right", "left", "Left")
KINDS = {
    **dict.fromkeys(
        (
            *("lane-full", "rate-limited", "queue-timeout", "deadline-infeasible"),
            *("memory-pressure", "model-busy", "upstream-busy", "upstream-paused"),
        ),
        (429, "Overloaded"),
    ),
    **dict.fromkeys(
        ("draining", "model-hangs", "not-ready", "model-unavailable"), (503, "Unhealthy")
    ),
    "not-offered": (424, "Backend"),
    "empty-input": (400, "Empty"),
    "invalid-json": (400, "Validation"),
    "body-timeout": (408, "Validation"),
    "too-large": (413, "Validation"),
    # TEI has neither keys nor models to choose from; these keep our status.
    "unauthorized": (401, "Unauthorized"),
    "unknown-model": (404, "Validation"),
}
"""TEI's status and name for our codes; other faults of the input are Validation, the rest Backend."""


def kind_of(error: TailraceError, validation: int) -> tuple[int, str]:
    """TEI's status and name for an error; `validation` is the status of input that cannot be used."""
    known = KINDS.get(error.code)
    if known is not None:
        return known
    return (validation, "Validation") if isinstance(error, InputError) else (424, "Backend")


def is_ids(value: Any) -> bool:
    """Whether something is a list of token ids."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(i, int) and not isinstance(i, bool) for i in value)
    )


def by_label(
    made: Scored | Classified, labels: Sequence[str], *, raw: bool
) -> list[list[dict[str, Any]]]:
    """For every text its labels with their scores, the best first."""
    rows = made.rows(len(labels), raw=raw)
    return [
        sorted(
            ({"score": s, "label": name} for s, name in zip(row, labels, strict=True)),
            key=lambda prediction: -float(str(prediction["score"])),
        )
        for row in rows
    ]


def timing(exchange: Exchange, characters: int, tokens: int) -> dict[str, str]:
    """TEI's headers, from the stamps of the exchange: whole milliseconds that no part shares."""
    parts = exchange.stamps.parts()

    def spent(*names: str) -> str:
        return str(int(sum(parts.get(name, 0.0) for name in names) * 1000))

    total = str(int(exchange.stamps.total * 1000))
    return {
        "x-compute-type": "cpu",
        "x-compute-time": total,
        "x-compute-characters": str(characters),
        "x-compute-tokens": str(tokens),
        "x-total-time": total,
        "x-tokenization-time": spent("tokenize"),
        "x-queue-time": spent("admit", "wait", "batch"),
        "x-inference-time": spent("infer", "post"),
    }


def about(
    offer: ServedEmbedder | ServedReranker | ServedClassifier, items_max: int
) -> dict[str, Any]:
    """What /info says of a model, key by key as TEI."""
    info, lane = offer.served.info, offer.served.lane
    if isinstance(offer, ServedEmbedder):
        kind: dict[str, Any] = {"embedding": {"pooling": "mean"}}
    else:
        names = dict(enumerate(offer.labels or ("LABEL_0",)))
        ids = {name: i for i, name in names.items()}
        labels = {"id2label": {str(i): name for i, name in names.items()}, "label2id": ids}
        kind = {"classifier" if offer.labels else "reranker": labels}
    return {
        "model_id": offer.served.name,
        "model_sha": None,
        "model_dtype": info.quantisation,
        "served_model_name": offer.served.name,
        "model_type": kind,
        "max_concurrent_requests": offer.served.door.seats,
        "max_input_length": info.max_tokens,
        "max_batch_tokens": int(min(lane.batch.cost_max, info.max_tokens * lane.batch.items_max)),
        "max_batch_requests": lane.batch.items_max,
        "max_client_batch_size": items_max,
        "auto_truncate": True,
        "tokenization_workers": lane.slots,
        "version": __version__,
        "sha": None,
        "docker_label": None,
    }
