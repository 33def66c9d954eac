"""What the OpenAPI document says of the book service. Documentation only."""

from typing import Any

FILTERS = {
    "category": {"type": "string", "description": "this category path and all below it"},
    "author": {"type": "string", "description": "part of the author's name"},
    "year_from": {"type": "integer"},
    "year_to": {"type": "integer"},
}
_PAGING = {
    "page": {"type": "integer", "minimum": 1, "default": 1},
    "size": {"type": "integer", "minimum": 1, "default": 10},
}
_SEARCH = {
    "q": {"type": "string", "description": "what is looked for"},
    "mode": {"enum": ["hybrid", "keyword", "vector"], "default": "hybrid"},
    **_PAGING,
    **FILTERS,
}
_DOCUMENT = {
    "type": "object",
    "required": ["id", "title"],
    "properties": {
        **{
            name: {"type": ["string", "null"]}
            for name in (
                "subtitle",
                "author",
                "translator",
                "publisher",
                "category",
                "description",
            )
        },
        "id": {"type": "string"},
        "title": {"type": "string"},
        "year": {"type": ["integer", "null"]},
        "keywords": {"type": "array", "items": {"type": "string"}},
        "aliases": {
            "type": "array",
            "items": {"type": "string"},
            "description": "other names by which people ask for it",
        },
    },
}


def _query(fields: dict[str, Any], *needed: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": schema}
        for name, schema in fields.items()
    ]


def _id() -> dict[str, Any]:
    return {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _body(schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _entry(summary: str, description: str = "", **extra: Any) -> dict[str, Any]:
    return {"summary": summary, "description": description, "openapi_extra": extra}


_HOW = (
    "Every hit carries rank and score of both legs; the answer says its `mode`, what `degraded` it, the "
    "`space` searched, whether it is `exact` and `short`, and how the legs were fused. `Server-Timing` "
    "tells the parts. A full line is 429 with `Retry-After`; an unknown category 422; a page beyond the "
    "end has no hits."
)

_TURN = (
    "Events: `spec` (what is searched, and by whom it was made), `cards`, then for each card "
    "`short.delta`, `short.done`, `long.delta`, `long.done`, and at last `done`, or `error` with its "
    "`stage` and what is finished as `partial`. Every event carries `at_ms` since the turn began. Nothing "
    "is kept here: a card carries its `card_id` and its texts, and showing it again asks nobody."
)
_CONVERSATION = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": {"enum": ["user", "assistant"]},
                    "content": {"type": "string"},
                },
            },
        },
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
    },
}

_COVER = (
    "The body is the picture itself. `found` says how its book was found: `ocr` (read here), `vlm` (by the "
    "model elsewhere that `cover.vlm` names), or `needs_input` (a person must say; `near` holds what came "
    "near, `why` is `no-text`, `no-match` or `ambiguous`). `books` holds the editions of the one work that "
    "is meant. A reading counts by how it fits the catalogue, never by an engine's confidence. `degraded` "
    "says what was left out, such as `vlm-capped`; `tokens` what the model elsewhere cost. No picture is "
    "kept or logged."
)
_MATCH = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "score": {"type": "number"},
        "title": {"type": "number", "description": "how like the title was read, 0 to 1"},
        "author": {"type": "number", "description": "how like the author was read, 0 to 1"},
        "document": _DOCUMENT,
    },
}
_COVER_ANSWER = {
    "type": "object",
    "properties": {
        "found": {"enum": ["ocr", "vlm", "needs_input"]},
        "why": {"enum": ["", "no-text", "no-match", "ambiguous"]},
        "degraded": {"type": "array", "items": {"type": "string"}},
        "books": {"type": "array", "items": _MATCH},
        "near": {"type": "array", "items": _MATCH},
        "read": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"by": {"enum": ["ocr", "vlm"]}, "text": {"type": "string"}},
            },
        },
        "picture": {
            "type": "object",
            "properties": {
                "format": {"enum": ["jpeg", "png", "webp"]},
                "width": {"type": "integer"},
                "height": {"type": "integer"},
                "turned": {"enum": [0, 90, 180, 270], "description": "degrees, clockwise"},
            },
        },
        "tokens": {
            "type": "object",
            "properties": {
                name: {"type": "integer"} for name in ("calls", "prompt", "completion", "reasoning")
            },
        },
    },
}
_PICTURES = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("image/jpeg", "image/png", "image/webp")
        },
    },
    "responses": {
        "200": {
            "description": "what became of the cover",
            "content": {"application/json": {"schema": _COVER_ANSWER}},
        }
    },
}

ABOUT: dict[tuple[str, str], dict[str, Any]] = {
    ("GET", "/search"): _entry("Search", _HOW, parameters=_query(_SEARCH, "q")),
    ("POST", "/search"): _entry(
        "Search, with the query in the body",
        _HOW,
        **_body(
            {"type": "object", "required": ["q"], "properties": _SEARCH},
            {"q": "비 오는 날 읽기 좋은 잔잔한 소설", "category": "소설", "size": 5},
        ),
    ),
    ("GET", "/stats"): _entry(
        "What the store holds: documents, categories, spaces; how turns are made"
    ),
    ("POST", "/recommend"): _entry(
        "Recommend: a turn of a conversation, as server-sent events",
        _TURN,
        **_body(
            _CONVERSATION,
            {"messages": [{"role": "user", "content": "비 오는 날 읽을 잔잔한 소설 추천해 줘"}]},
        ),
    ),
    ("POST", "/cover"): _entry("The book of a cover, by its picture", _COVER, **_PICTURES),
    ("POST", "/documents"): _entry(
        "Write documents: all or none; those that are there as they are cost nothing",
        **_body(
            {"type": "object", "properties": {"documents": {"type": "array", "items": _DOCUMENT}}}
        ),
    ),
    ("GET", "/{id}"): _entry("One document", parameters=[_id()]),
    ("PUT", "/{id}"): _entry("Write one document", parameters=[_id()], **_body(_DOCUMENT)),
    ("DELETE", "/{id}"): _entry("Remove one document", parameters=[_id()]),
    ("GET", "/{id}/similar"): _entry(
        "Documents near to one", parameters=[_id(), *_query({"size": _PAGING["size"], **FILTERS})]
    ),
}
