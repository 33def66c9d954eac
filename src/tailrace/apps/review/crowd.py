"""POST /api/crowd: the box's own client fires a crowd through the box's own doors, over loopback.

A browser opens six connections to a host and would line up the rest itself: its numbers would be about
the browser. One line of JSON per news of a caller, and one at the end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tailrace.apps.review.box import ReviewBox
from tailrace.bench.crowd import DOORS, Caller, fire
from tailrace.core.errors import InputError, LaneFull
from tailrace.serve.body import read_json, text_field
from tailrace.serve.exchange import Exchange, answer
from tailrace.serve.problems import Answer

CALLERS_MAX = 60
CROWDS_MAX = 2
BACK_S = 5.0
"""When to come back who found that many crowds on their way."""
MEDIA_TYPE = "application/x-ndjson"


def crowd_routes(box: ReviewBox) -> APIRouter:
    """The entry, for a page that wants to see a crowd."""
    routes = APIRouter(prefix="/api", tags=["page"])
    going = asyncio.Semaphore(CROWDS_MAX)

    async def entry(request: Request) -> Response:
        asked: dict[str, Any] = {}

        async def read(exchange: Exchange) -> Answer:
            with exchange.part("parse"):
                asked.update(await _asked(box, request))
                if going.locked():
                    full = LaneFull(f"{CROWDS_MAX} crowds are on their way; come after them.")
                    full.back_s = (BACK_S, BACK_S)
                    raise full
            return Answer(200, b"", {})

        made = await answer(request, box.clock, read)
        if made.status_code != 200:
            return made
        lines = _lines(box, request, asked, going)
        return StreamingResponse(
            lines, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"}
        )

    routes.add_api_route(
        "/crowd", entry, methods=["POST"], summary="Send N reviews through one door at once"
    )
    return routes


async def _asked(box: ReviewBox, request: Request) -> dict[str, Any]:
    body = await read_json(request, box.settings.server.body_max_bytes)
    door, texts = body.get("door"), body.get("texts")
    if not isinstance(door, str) or door not in DOORS:
        raise InputError(f"`door` must be one of {', '.join(DOORS)}.")
    if not isinstance(texts, list) or not 1 <= len(texts) <= CALLERS_MAX:
        raise InputError(f"`texts` must be a list of 1 to {CALLERS_MAX} reviews.")
    chars_max = box.settings.review.text_max_chars
    checked = [text_field({"texts": text}, "texts", chars_max) for text in texts]
    return {"door": door, "texts": checked, "fresh": bool(body.get("fresh"))}


async def _lines(
    box: ReviewBox, request: Request, asked: dict[str, Any], going: asyncio.Semaphore
) -> AsyncIterator[bytes]:
    host, port = request.scope["server"]
    netloc = f"[{host}]" if ":" in host else host
    async with going:
        if asked["fresh"]:
            box.cache.clear()
        if box.child is not None:
            box.child.peak_bytes = box.child.resident_bytes
        url = f"http://{netloc}:{port}/api"
        async with aclosing(fire(url, asked["door"], asked["texts"])) as callers:
            async for caller in callers:
                yield orjson.dumps(_line(caller)) + b"\n"
        peak = box.child.peak_bytes if box.child else 0
        yield orjson.dumps({"end": True, "rss_peak_bytes": peak}) + b"\n"


def _line(caller: Caller) -> dict[str, Any]:
    headers = caller.headers
    ms = headers.get("retry-after-ms")
    return {
        "i": caller.i,
        "sent_ms": round(caller.sent_ms, 3),
        "status": caller.status,
        "round_trip_ms": caller.round_trip_ms and round(caller.round_trip_ms, 3),
        "done": caller.done,
        "done_ms": caller.done_ms and round(caller.done_ms, 3),
        "server_timing": headers.get("server-timing", ""),
        "x_cache": headers.get("x-cache"),
        "x_batch_size": int(headers["x-batch-size"]) if "x-batch-size" in headers else None,
        "retry_after": int(headers["retry-after"]) if "retry-after" in headers else None,
        "retry_after_ms": int(ms) if ms else None,
        "body": caller.body,
        "ticket": caller.ticket,
        "ticket_ms": caller.done_ms and round(caller.done_ms, 3) if caller.ticket else None,
        "error": caller.error or None,
    }
