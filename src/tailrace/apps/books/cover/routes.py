"""POST /api/books/cover: a picture as the body, its book as the answer.

Types, sizes and shapes only; what happens behind them is the desk's. No byte of a picture is logged or kept.
"""

from dataclasses import asdict
from typing import Any

from tailrace.apps.books.cover.desk import CoverDesk, Found
from tailrace.apps.books.cover.match import Match
from tailrace.models.picture import check_type
from tailrace.serve.body import read_bytes
from tailrace.serve.exchange import Exchange
from tailrace.serve.problems import Answer, json_answer


class Covers:
    """The endpoint over one desk."""

    def __init__(self, desk: CoverDesk) -> None:
        self._desk = desk

    async def endpoint(self, exchange: Exchange) -> Answer:
        """Check, find, and tell how it was found."""
        desk, request = self._desk, exchange.request
        desk.check()
        with desk.place():
            with exchange.part("parse"):
                declared = request.headers.get("content-type", "").split(";")[0].strip().lower()
                data = await read_bytes(request, desk.settings.body_max_bytes)
                media_type = check_type(data, declared)
            return json_answer(shown(await desk.find(exchange, data, media_type)))


def shown(found: Found) -> dict[str, Any]:
    """What is told of a cover."""
    picture = found.reading.picture
    tokens = found.tokens
    return {
        "found": found.how,
        "why": found.matched.why,
        "degraded": found.degraded,
        "books": [_book(match) for match in found.matched.books],
        "near": [_book(match) for match in found.matched.near],
        "read": [
            *({"by": "ocr", "text": line.text} for line in found.reading.lines),
            *({"by": "vlm", "text": line.text} for line in found.said),
        ],
        "picture": {
            "format": picture.format,
            "width": picture.width,
            "height": picture.height,
            "turned": found.reading.turned,
        },
        "tokens": {
            "calls": tokens.calls,
            "prompt": tokens.prompt,
            "completion": tokens.completion,
            "reasoning": tokens.reasoning,
        },
    }


def _book(match: Match) -> dict[str, Any]:
    return {
        "id": match.document.id,
        "score": round(match.score, 3),
        "title": round(match.title, 3),
        "author": round(match.author, 3),
        "document": asdict(match.document),
    }
