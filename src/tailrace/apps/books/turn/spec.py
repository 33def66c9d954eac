"""What to search for, out of a conversation: the question to the model, and the check of its answer.

Knows nothing of the store: a category that nobody has is dropped, a spec that cannot be used is replaced by
the last words of the person, and both are said.
"""

import unicodedata
from collections.abc import Collection, Sequence
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

MESSAGES_MAX = 32
"""Messages of one conversation."""
MESSAGE_CHARS_MAX = 4000
"""Characters of one message."""
QUERY_CHARS_MAX = 200
CATEGORIES_TOLD_MAX = 60
"""How many categories the model is told of."""


class Message(BaseModel):
    """One message of the conversation."""

    model_config = ConfigDict(extra="forbid")
    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MESSAGE_CHARS_MAX)


class SearchSpec(BaseModel):
    """What to look for; everything but the query narrows."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    query: str = Field(min_length=1, max_length=QUERY_CHARS_MAX)
    category: str | None = None
    author: str | None = Field(None, max_length=100)
    year_from: int | None = Field(None, ge=-3000, le=3000)
    year_to: int | None = Field(None, ge=-3000, le=3000)

    @model_validator(mode="after")
    def _in_order(self) -> "SearchSpec":
        if (
            self.year_from is not None
            and self.year_to is not None
            and self.year_from > self.year_to
        ):
            raise ValueError("year_from is after year_to")
        return self


class BadSpec(ValueError):
    """The model's answer is no usable spec: why, in one sentence."""


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": QUERY_CHARS_MAX},
        "category": {"type": ["string", "null"]},
        "author": {"type": ["string", "null"]},
        "year_from": {"type": ["integer", "null"]},
        "year_to": {"type": ["integer", "null"]},
    },
    "required": ["query", "category", "author", "year_from", "year_to"],
    "additionalProperties": False,
}

ASK = (
    "You turn a conversation about books into one search. Answer with JSON only. "
    "query: what the person wants to read, in the person's own words and language, without politeness. "
    "category, author, year_from, year_to: only where the person asks for it, else null. "
    "Categories: {categories}."
)


def asking(messages: Sequence[Message], categories: Sequence[str]) -> list[dict[str, str]]:
    """The messages that ask for a spec."""
    told = ", ".join(categories[:CATEGORIES_TOLD_MAX]) or "none"
    said = [{"role": message.role, "content": message.content} for message in messages]
    return [{"role": "system", "content": ASK.format(categories=told)}, *said]


def read_spec(text: str, categories: Collection[str]) -> SearchSpec:
    """The spec that the model wrote; raises BadSpec."""
    try:
        spec = SearchSpec.model_validate(orjson.loads(_unfenced(text)))
    except orjson.JSONDecodeError:
        raise BadSpec("the model's spec is not JSON") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "spec"
        raise BadSpec(f"the model's spec is not usable: {where}: {first['msg']}") from None
    changes: dict[str, Any] = {"query": " ".join(spec.query.split())}
    if not changes["query"]:
        raise BadSpec("the model's spec has an empty query")
    if spec.category is not None and not any(_within(c, spec.category) for c in categories):
        changes["category"] = None
    if spec.author is not None and not spec.author.strip():
        changes["author"] = None
    return spec.model_copy(update=changes)


def last_words(messages: Sequence[Message]) -> SearchSpec:
    """The spec without a model: what the person said last."""
    said = next((m.content for m in reversed(messages) if m.role == "user"), messages[-1].content)
    return SearchSpec(query=" ".join(said.split())[:QUERY_CHARS_MAX] or said[:QUERY_CHARS_MAX])


def grounded(spec: SearchSpec, messages: Sequence[Message]) -> bool:
    """Whether the query has anything of the conversation: two letters in a row of what was said.

    A model that is too small for the language writes something else altogether.
    """
    said = _letters(" ".join(message.content for message in messages))
    query = _letters(spec.query)
    pairs = [query[i : i + 2] for i in range(len(query) - 1)] or [query]
    return sum(pair in said for pair in pairs) >= max(1, len(pairs) // 2)


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFC", text).casefold()
    return "".join(sign for sign in folded if sign.isalnum())


def _within(category: str, asked: str) -> bool:
    return category == asked or category.startswith(f"{asked}/")


def _unfenced(text: str) -> str:
    return text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
