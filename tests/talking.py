"""Book services whose language model is a scripted one: what it writes, and whole turns with it."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bookshops import Shop, serving_books
from upstream import Asked, ScriptedUpstream, Step, upstream

WANTED = {
    "messages": [{"role": "user", "content": "바다 이야기가 나오는 소설 추천해 줘"}],
    "count": 2,
}
SPEC = {
    "query": "바다 이야기",
    "category": None,
    "author": None,
    "year_from": None,
    "year_to": None,
}
REASONS = {
    "short_1": "바다가 나옵니다.",
    "short_2": "이야기가 좋습니다.",
    "long_1": "바다를 오래 바라본 사람의 이야기입니다.",
    "long_2": "바다에서 자란 아이의 이야기입니다.",
}


def written(text: str, *, finish: str = "stop", size: int = 6) -> list[bytes]:
    """A stream that writes `text` in small pieces and tells what it cost."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"role": "assistant"}}]}]
    chunks += [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]
    usage = {"prompt_tokens": 50, "completion_tokens": len(pieces)}
    chunks += [{"choices": [], "usage": usage}]
    return [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def is_spec(asked: Asked) -> bool:
    return bool(asked.body["response_format"]["json_schema"]["name"] == "spec")


class Library:
    """The service, the model behind it, and what it says."""

    def __init__(self, shop: Shop, far: ScriptedUpstream) -> None:
        self.shop, self.far = shop, far
        self.well()
        far.decide = lambda asked: self.spec if is_spec(asked) else self.reasons

    def well(self) -> None:
        """Let the model write as it should, at once."""
        self.spec = Step(pieces=written(json.dumps(SPEC)))
        self.reasons = Step(pieces=written(json.dumps(REASONS, ensure_ascii=False)))

    def turn(self, body: dict[str, Any] = WANTED) -> list[tuple[str, dict[str, Any]]]:
        """All events of a turn."""
        events = []
        with (
            self.shop.client() as client,
            client.stream("POST", "/api/books/recommend", json=body) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"] == "text/event-stream"
            name = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    events.append((name, json.loads(line.removeprefix("data: "))))
        return events


@contextlib.contextmanager
def library(folder: Path, model: Path, **settings: Any) -> Iterator[Library]:
    rows = [
        {"id": "a1", "title": "바다 이야기", "author": "하주", "category": "소설/한국"},
        {"id": "a2", "title": "바다 아이", "author": "나나", "category": "소설/외국"},
        {"id": "a3", "title": "하늘", "author": "나나", "category": "과학"},
    ]
    with (
        upstream() as far,
        serving_books(
            folder / "books.db",
            model__source=f"dir:{model}",
            store__catalogue=False,
            threads=2,
            llm__source=far.url,
            llm__model="far-chat",
            search__embed_ms=5000.0,
            **settings,
        ) as shop,
    ):
        assert shop.ask("POST", "/api/books/documents", json={"documents": rows}).is_success
        yield Library(shop, far)
