"""The HTTP entries of the book service: searches, documents, numbers.

Parameters, bodies and headers only; what happens behind them is the server's.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tailrace.apps.books.cover.routes import Covers
from tailrace.apps.books.schemas import ABOUT, FILTERS
from tailrace.apps.books.server import BooksServer
from tailrace.core.errors import InputError
from tailrace.search.fuse import RANK_BASE, TIES, Fused, Votes
from tailrace.search.hybrid import WINDOW, Answer, Query
from tailrace.search.rows import BadRow, document_of
from tailrace.serve.arrival import App
from tailrace.serve.body import read_json, text_field
from tailrace.serve.entries import short
from tailrace.serve.exchange import Exchange, answer
from tailrace.serve.fields import choice, whole
from tailrace.serve.problems import Answer as HttpAnswer
from tailrace.serve.problems import internal, json_answer
from tailrace.stores.errors import UnknownDocument
from tailrace.stores.port import Document, Filter, Hit
from tailrace.wire.headers import X_API_KEY

MODES = ("hybrid", "keyword", "vector")
WHOLE = re.compile(r"-?[0-9]{1,9}")


class BooksRoutes:
    """The endpoints over one server."""

    def __init__(self, server: BooksServer) -> None:
        self._server = server
        self.router = APIRouter(prefix="/api/books", tags=["books"])
        self.entries: dict[tuple[str, str], App] = {}
        """The same entries, those without a parameter in their path, for the short way in."""
        self._add("GET", "/search", self._search)
        self._add("POST", "/search", self._search)
        self._add("GET", "/stats", self._stats)
        self._add("POST", "/recommend", server.desk.turns.endpoint)
        self._add("POST", "/cover", Covers(server.covers).endpoint)
        self._add("POST", "/documents", self._put_many)
        self._add("GET", "/{id}", self._get)
        self._add("PUT", "/{id}", self._put)
        self._add("DELETE", "/{id}", self._delete)
        self._add("GET", "/{id}/similar", self._similar)

    def _add(
        self, method: str, path: str, endpoint: Callable[[Exchange], Awaitable[HttpAnswer]]
    ) -> None:
        async def inside(exchange: Exchange) -> HttpAnswer:
            request = exchange.request
            exchange.caller = request.headers.get(X_API_KEY) or (
                request.client.host if request.client else ""
            )
            return await endpoint(exchange)

        async def entry(request: Request) -> Response:
            return await answer(request, self._server.clock, inside)

        if "{" not in path:
            self.entries[method, f"{self.router.prefix}{path}"] = short(entry, internal)
        name = f"books_{method.lower()}{path}".translate(str.maketrans("/", "_", "{}"))
        self.router.add_api_route(
            path,
            entry,
            methods=[method],
            name=name,
            operation_id=name,
            **ABOUT[method, path],
        )

    # -- searching ------------------------------------------------------------------------------

    async def _search(self, exchange: Exchange) -> HttpAnswer:
        server, settings = self._server, self._server.settings
        with exchange.part("parse"):
            asked = await self._asked(exchange.request)
            text = text_field(asked, "q", settings.search.text_max_chars)
            query = Query(
                text,
                _filter(asked),
                whole(asked, "page") or 1,
                self._size(asked),
                choice(asked, "mode", MODES),  # type: ignore[arg-type]
            )
        found = await server.searches.find(exchange, query)
        return json_answer(_page(query, found, self._fusion(found)))

    async def _asked(self, request: Request) -> Mapping[str, Any]:
        if request.method == "POST":
            body = await read_json(request, self._server.settings.server.body_max_bytes)
            unknown = sorted(set(body) - {"q", "mode", "page", "size", *FILTERS})
            if unknown:
                raise InputError(f"`{unknown[0]}` is no field of a search.")
            return body
        return _numbers(request)

    def _size(self, asked: Mapping[str, Any]) -> int:
        size, most = whole(asked, "size") or 10, self._server.settings.search.size_max
        if size > most:
            raise InputError(f"`size` may be {most} at most.")
        return size

    def _fusion(self, found: Answer) -> dict[str, Any]:
        return {
            "method": "rrf",
            "k": self._server.searches.search.k,
            "rank_base": RANK_BASE,
            "window": WINDOW,
            "weights": {
                "keyword": max(found.votes.keyword, default=0.0),
                "vector": found.votes.vector,
            },
            "ties": TIES,
            "rerank": stage.told() if (stage := self._server.searches.search.reranking) else None,
        }

    async def _similar(self, exchange: Exchange) -> HttpAnswer:
        store = self._server.store
        with exchange.part("parse"):
            asked = _numbers(exchange.request)
            size, where = self._size(asked), _filter(asked)
        id_ = exchange.request.path_params["id"]
        leg = await self._server.ask_store(store.similar, id_, size, where)
        exchange.stamps.close("vector", exchange.clock.now())
        held = await self._server.ask_store(store.get, [hit.id for hit in leg.hits])
        exchange.stamps.close("fetch", exchange.clock.now())
        documents = {document.id: document for document in held}
        hits = [
            {
                "id": hit.id,
                "rank": hit.rank,
                "score": hit.score,
                "document": documents[hit.id],
            }
            for hit in leg.hits
            if hit.id in documents
        ]
        return json_answer(
            {"id": id_, "hits": hits, "space": leg.space, "exact": leg.exact, "short": leg.short}
        )

    # -- documents ------------------------------------------------------------------------------

    async def _get(self, exchange: Exchange) -> HttpAnswer:
        id_ = exchange.request.path_params["id"]
        held = await self._server.ask_store(self._server.store.get, [id_])
        exchange.stamps.close("fetch", exchange.clock.now())
        if not held:
            raise UnknownDocument(f"There is no document {id_!r}.")
        return json_answer(held[0])

    async def _put(self, exchange: Exchange) -> HttpAnswer:
        with exchange.part("parse"):
            body = await self._body(exchange.request)
            id_ = exchange.request.path_params["id"]
            if body.get("id", id_) != id_:
                raise BadRow("`id` differs from the one in the path.")
            document = document_of({**body, "id": id_})
        made = await self._server.put([document])
        exchange.stamps.close("upsert", exchange.clock.now())
        return json_answer(document, 201 if made.inserted else 200)

    async def _put_many(self, exchange: Exchange) -> HttpAnswer:
        with exchange.part("parse"):
            rows = (await self._body(exchange.request)).get("documents")
            most = self._server.settings.ingest.documents_max
            if not isinstance(rows, list) or not 0 < len(rows) <= most:
                raise InputError(f"`documents` must be a list of 1 to {most} documents.")
            documents = [_numbered(number, row) for number, row in enumerate(rows)]
        made = await self._server.put(documents)
        exchange.stamps.close("upsert", exchange.clock.now())
        return json_answer(asdict(made))

    async def _delete(self, exchange: Exchange) -> HttpAnswer:
        id_ = exchange.request.path_params["id"]
        gone = await self._server.ask_store(self._server.store.delete, [id_])
        exchange.stamps.close("upsert", exchange.clock.now())
        if not gone:
            raise UnknownDocument(f"There is no document {id_!r}.")
        return HttpAnswer(204, b"", {})

    async def _body(self, request: Request) -> dict[str, Any]:
        return await read_json(request, self._server.settings.server.body_max_bytes)

    # -- numbers --------------------------------------------------------------------------------

    async def _stats(self, exchange: Exchange) -> HttpAnswer:
        server = self._server
        stats = await server.ask_store(server.store.stats)
        categories = await server.ask_store(server.store.categories)
        spaces = await server.ask_store(server.store.spaces)
        exchange.stamps.close("fetch", exchange.clock.now())
        held = [
            {
                **asdict(one.space),
                "fingerprint": one.space.fingerprint,
                "state": one.state,
                "vectors": one.vectors,
            }
            for one in spaces
        ]
        lanes = {
            lane.name: {"waiting": lane.waiting, "running": lane.running} for lane in server.lanes
        }
        made = {"categories": categories, "spaces": held, "lanes": lanes}
        return json_answer({**asdict(stats), **made, **server.about()})


def _page(query: Query, found: Answer, fusion: dict[str, Any]) -> dict[str, Any]:
    first = (query.page - 1) * query.size
    more = first + query.size < found.total
    return {
        "q": query.text,
        "mode": found.mode,
        "degraded": list(found.degraded),
        "space": found.space,
        "exact": found.exact,
        "short": found.short,
        "page": query.page,
        "size": query.size,
        "total": found.total,
        "next": query.page + 1 if more else None,
        "fusion": fusion,
        "hits": [_hit(one.fused, one.document, found.votes) for one in found.found],
    }


def _hit(fused: Fused, document: Document, votes: Votes) -> dict[str, Any]:
    return {
        "id": fused.id,
        "rank": fused.rank,
        "score": fused.score,
        "keyword": _leg(fused.keyword, fused.vote),
        "vector": _leg(fused.vector, votes.vector),
        "rerank": asdict(fused.reread) if fused.reread else None,
        "document": document,
    }


def _leg(hit: Hit | None, weight: float) -> dict[str, Any] | None:
    return None if hit is None else {"rank": hit.rank, "score": hit.score, "weight": weight}


def _numbers(request: Request) -> dict[str, Any]:
    """The query string, its numbers as numbers."""
    given: dict[str, Any] = dict(request.query_params)
    for name in ("page", "size", "year_from", "year_to"):
        if WHOLE.fullmatch(given.get(name, "")):
            given[name] = int(given[name])
    unknown = sorted(set(given) - {"q", "mode", "page", "size", *FILTERS})
    if unknown:
        raise InputError(f"`{unknown[0]}` is no parameter of a search.")
    return given


def _filter(asked: Mapping[str, Any]) -> Filter:
    """The filters of a search, checked."""
    words: dict[str, str | None] = {}
    for name in ("category", "author"):
        words[name] = text_field(asked, name, 200) if asked.get(name) is not None else None
    years = {name: whole(asked, name, least=-3000) for name in ("year_from", "year_to")}
    return Filter(
        category=words["category"],
        author=words["author"],
        year_from=years["year_from"],
        year_to=years["year_to"],
    )


def _numbered(number: int, row: Any) -> Document:
    try:
        return document_of(row)
    except InputError as error:
        raise BadRow(f"document {number}: {error}") from error
