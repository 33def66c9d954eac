"""Fields of a request's body as the dialects read them: null counts as left out, faults name the field."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tailrace.core.errors import InputError

INPUT_TYPES = {
    "query": "query",
    "search_query": "query",
    "retrieval.query": "query",
    "document": "passage",
    "passage": "passage",
    "search_document": "passage",
    "retrieval.passage": "passage",
}
"""Cohere's, Jina's and NVIDIA's words for the two sides of a search, in the words of the e5 models."""


UNNAMED = "default/not-specified"
"""What Infinity's client sends for a model that nobody named."""


def flag(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """True or false."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InputError(f"`{name}` must be true or false.")
    return value


def whole(body: Mapping[str, Any], name: str, *, least: int = 1) -> int | None:
    """A whole number, at least `least`, if it is there."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"`{name}` must be a whole number from {least} on.")
    return value


def choice(body: Mapping[str, Any], name: str, options: Sequence[str]) -> str:
    """One of some words; the first where it is left out."""
    value = body.get(name)
    if value is None:
        return options[0]
    if not isinstance(value, str) or value not in options:
        raise InputError(f"`{name}` must be one of {', '.join(options)}.")
    return value


def model_named(body: Mapping[str, Any]) -> str | None:
    """The model asked for, if one is."""
    name = body.get("model")
    if name is not None and not isinstance(name, str):
        raise InputError("`model` must be a string.")
    return None if name == UNNAMED else name


def prompt_of(body: Mapping[str, Any], prompts: Collection[str]) -> str | None:
    """The prompt asked for: `prompt_name`, or `input_type` (Cohere) or `task` (Jina)."""
    name = body.get("prompt_name")
    for other in ("input_type", "task"):
        asked = body.get(other)
        if name is None and asked is not None:
            name = INPUT_TYPES.get(asked) if isinstance(asked, str) else None
            if name is None:
                raise InputError(f"`{other}` must be one of {', '.join(INPUT_TYPES)}.")
    if name is not None and (not isinstance(name, str) or name not in prompts):
        known = ", ".join(f'"{prompt}"' for prompt in prompts)
        # TEI's wording, which its clients parse to learn the names.
        raise InputError(f"`prompt_name` is not known. Available prompts: [{known}]")
    return name
