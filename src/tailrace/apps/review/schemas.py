"""What the OpenAPI document says of the review box: shapes, answers and one line about each entry.

Documentation only: requests are read and answers written by the routes.
"""

from typing import Any


def text_body(chars_max: int) -> dict[str, Any]:
    """What the doors take in."""
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["text"],
                        "properties": {
                            "text": {"type": "string", "minLength": 1, "maxLength": chars_max}
                        },
                    },
                    "example": {"text": "가격이 좀 비싸긴 한데 직원분이 친절했어요"},
                }
            },
        }
    }


_TOPICS: dict[str, Any] = {
    "type": "array",
    "description": "Best first; scores are calibrated probabilities.",
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "label": {"type": "string"},
            "score": {"type": "number"},
        },
    },
}
_MS = {"type": "number", "description": "milliseconds"}
_PROBLEM = {
    "type": "object",
    "description": "Problem details (RFC 9457)",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "door": {"type": "string"},
        "retry_after_s": {"type": "integer"},
    },
}


def _json(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problem(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/problem+json": {"schema": _PROBLEM}},
    }


_COMMON = {
    "400": _problem("Not JSON"),
    "413": _problem("Body too large"),
    "415": _problem("Not application/json"),
    "422": _problem("The text cannot be used"),
    "429": _problem("Full: come back after Retry-After"),
    "503": _problem("Waited too long, cannot meet X-Deadline-Ms, or shutting down"),
}

PREDICTION: dict[str, Any] = {
    "responses": {
        "200": _json(
            "The topics of the review",
            {
                "topics": _TOPICS,
                "waited_ms": _MS,
                "inference_ms": _MS,
                "door": {"type": "string"},
                "model": {"type": "string"},
            },
        ),
        **_COMMON,
        "500": _problem("The model failed"),
        "502": _problem("The naive child was killed"),
        "504": _problem("The model ran past the deadline"),
    }
}
_JOB_BODY = _json(
    "A ticket",
    {
        "job_id": {"type": "string"},
        "status": {"type": "string", "enum": ["queued", "running", "done", "failed"]},
        "position": {"type": ["integer", "null"], "description": "How many go first; 0 = next"},
        "eta_seconds": {"type": ["number", "null"], "description": "Until the answer is ready"},
        "result": {"type": "object", "properties": {"topics": _TOPICS}},
        "waited_ms": _MS,
        "inference_ms": _MS,
    },
)
JOB: dict[str, Any] = {
    "responses": {"200": _JOB_BODY, "202": _JOB_BODY, "404": _problem("No such ticket"), **_COMMON}
}

_ABOUT = {
    "/naive/predict": "Everything at once, in a child process under a memory limit",
    "/limited/predict": "A bounded line: whoever finds no seat is refused at once",
    "/batched/predict": "What gathers within the window runs as one inference",
    "/queue/jobs": "A ticket at once, the answer later",
    "/queue/jobs/{job_id}": "What became of a ticket",
    "/stats": "The box as it is now",
    "/model": "Which model, and which topics",
}


def documented(path: str) -> dict[str, Any]:
    """The line about an entry, as the route's keyword."""
    return {"summary": _ABOUT[path]}
