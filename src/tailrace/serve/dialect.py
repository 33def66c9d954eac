"""What all dialects do alike: know who asks, read a bounded body, find the model, give errors a shape.

A dialect is one file in dialects/: its routes, its shapes, its errors. It calls embed and rerank and
knows nothing of lanes.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tailrace.core.clock import Clock
from tailrace.core.errors import Infeasible, InputError, TailraceError
from tailrace.serve.arrival import App, Receive, Scope, Send
from tailrace.serve.body import parse_json, read_bytes
from tailrace.serve.catalogue import Catalogue
from tailrace.serve.exchange import Exchange, answer
from tailrace.serve.keys import Keys
from tailrace.serve.problems import INTERNAL, STATUS, Answer, InvalidJson, problem_answer
from tailrace.serve.schemas import Schema, taking
from tailrace.serve.served import Answered, Terms
from tailrace.wire.headers import X_BATCH_SIZE, X_CACHE, X_FALLBACK

log = logging.getLogger(__name__)

X_PRIORITY = "X-Priority"
X_TRUNCATED = "X-Truncated"
"""How many texts of the answer lost their end."""


class EmptyInput(InputError):
    """The request brings a list with nothing in it."""

    code = "empty-input"


class TooManyItems(InputError):
    """The request has more items than one may bring."""

    code = "too-many-items"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may bring."""

    body_max_bytes: int
    items_max: int
    text_max_chars: int
    bulk_items: int


@dataclass(frozen=True, slots=True)
class Manners:
    """Where the dialects' own servers disagree with themselves or with each other."""

    tei_validation_status: int = 422
    openai_errors_flat: bool = False


def always_ready() -> tuple[bool, str]:
    """Ready, whatever happens."""
    return True, ""


@dataclass(frozen=True, slots=True)
class Front:
    """What every dialect is given."""

    clock: Clock
    catalogue: Catalogue
    keys: Keys
    limits: Limits
    manners: Manners = Manners()
    ready: Callable[[], tuple[bool, str]] = always_ready
    """Whether work is taken in and models answer; else why not."""


Endpoint = Callable[[Exchange, dict[str, Any]], Awaitable[Answer]]


class Dialect:
    """Base of the dialects. `on_error` is the one method that most of them override."""

    tag = "native"

    def __init__(self, front: Front) -> None:
        self.front = front
        self.router = APIRouter(tags=[self.tag])
        self.entries: dict[tuple[str, str], App] = {}
        """The same entries for the short way in, but for those with parameters in their path."""
        self.add_routes()

    def add_routes(self) -> None:
        """Say `self.post` and `self.get` for every entry."""
        raise NotImplementedError

    def on_error(self, error: TailraceError) -> Answer:
        """The answer for an error, in the dialect's shape."""
        raise NotImplementedError

    # -- entries ------------------------------------------------------------------------------

    def post(self, path: str, endpoint: Endpoint, body: Schema, **about: Any) -> None:
        """An entry with a JSON object for a body, which usually looks like `body`."""
        about["openapi_extra"] = taking(body)
        self._add("POST", path, endpoint, about, reads_body=True)

    def get(self, path: str, endpoint: Endpoint, *, public: bool = False, **about: Any) -> None:
        """An entry without a body; a `public` one answers without a key."""
        self._add("GET", path, endpoint, about, reads_body=False, public=public)

    def _add(
        self,
        method: str,
        path: str,
        endpoint: Endpoint,
        about: dict[str, Any],
        *,
        reads_body: bool,
        public: bool = False,
    ) -> None:
        async def enter(exchange: Exchange) -> Answer:
            with exchange.part("parse"):
                if not public:
                    exchange.caller = self.front.keys.caller(exchange.request)
                body = await self._body(exchange.request) if reads_body else {}
            return await endpoint(exchange, body)

        async def entry(request: Request) -> Response:
            return await answer(request, self.front.clock, enter, self.on_error)

        async def short(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                response = await entry(Request(scope, receive))
            except Exception:
                log.exception("a defect at %s", path)
                made = self.on_error(TailraceError())
                response = Response(made.body, made.status, made.headers)
            await response(scope, receive, send)

        if "{" not in path:  # the short way knows paths as they stand, the router reads parameters
            self.entries[method, path] = short
        self.router.add_api_route(path, entry, methods=[method], name=f"{self.tag} {path}", **about)

    async def _body(self, request: Request) -> dict[str, Any]:
        body = parse_json(await read_bytes(request, self.front.limits.body_max_bytes))
        if not isinstance(body, dict):
            raise InvalidJson("The body must be a JSON object.")
        return body

    # -- reading ------------------------------------------------------------------------------

    def terms(self, exchange: Exchange, items: int, *, truncate: bool = True) -> Terms:
        """Who asks, until when (X-Deadline-Ms), how urgent (X-Priority, or by the number of items)."""
        headers = exchange.request.headers
        deadline = exchange.deadline()
        priority = headers.get(X_PRIORITY, "").lower()
        if priority not in {"", "interactive", "bulk"}:
            raise InputError(f"{X_PRIORITY} must be interactive or bulk.")
        bulk = priority == "bulk" or (not priority and items > self.front.limits.bulk_items)
        return Terms(exchange.caller, deadline, bulk=bulk, truncate=truncate)

    def check_count(self, items: Sequence[Any], name: str) -> None:
        """Refuse a list that is empty or too long."""
        if not items:
            raise EmptyInput(f"`{name}` is empty.")
        self.check_number(len(items), name)

    def check_number(self, number: int, name: str) -> None:
        """Refuse what makes too many items."""
        most = self.front.limits.items_max
        if number > most:
            raise TooManyItems(f"`{name}` makes {number} items; the limit is {most}.")

    def check_text(self, text: Any, name: str, *, empty: bool = False) -> str:
        """A text a model can read; `empty` allows an empty one."""
        if not isinstance(text, str):
            raise InputError(f"`{name}` must be a string.")
        if not text and not empty:
            raise InputError(f"`{name}` is empty.")
        most = self.front.limits.text_max_chars
        if len(text) > most:
            raise InputError(f"`{name}` has {len(text)} characters; the limit is {most}.")
        try:
            text.encode()
        except UnicodeEncodeError as fault:
            raise InputError(f"`{name}` has a lone surrogate at {fault.start}.") from fault
        return text


def shaped(error: TailraceError, status: int, body: Any) -> Answer:
    """An error's answer: a dialect's own status and body, and when to come back in every client's words."""
    made = problem_answer(error)
    retry = {}
    if status >= 429 or status in {408, 409}:
        # Coming back is of no use to a caller whose deadline will have passed.
        useful = error.back_s is not None and not isinstance(error, Infeasible)
        retry = {"x-should-retry": "true" if useful else "false"}
    headers = {**made.headers, "Content-Type": "application/json", **retry}
    return Answer(status, orjson.dumps(body), headers)


def safe(error: TailraceError) -> str:
    """The message for a caller; of a defect of ours it says nothing."""
    text = str(error) if error.code in STATUS else "Look at the log of the server."
    return text.encode("utf-8", "replace").decode()


def status_of(error: TailraceError) -> int:
    """The status the house gives an error."""
    return STATUS.get(error.code, INTERNAL)[0]


def told(answered: Answered) -> dict[str, str]:
    """The headers about how an answer came about."""
    hit = answered.hits == len(answered.values)
    headers = {X_CACHE: "hit" if hit else "miss"}
    if answered.batch_size:
        headers[X_BATCH_SIZE] = str(answered.batch_size)
    if cut := sum(answered.truncated):
        headers[X_TRUNCATED] = str(cut)
    if answered.fallback:
        headers[X_FALLBACK] = answered.fallback
    return headers
