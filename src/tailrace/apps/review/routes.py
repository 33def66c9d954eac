"""The HTTP entries of the review box: the four doors under /api, and what can be looked at.

Bodies and headers only; what happens behind them is the box's.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.schemas import JOB, PREDICTION, documented, text_body
from tailrace.apps.review.snapshot import model_card, snapshot
from tailrace.core.errors import ModelError, QueueTimeout, Rejected, TailraceError
from tailrace.core.events import Refused, Settled
from tailrace.core.lane import ON_MODEL
from tailrace.core.work import Work
from tailrace.serve.arrival import App
from tailrace.serve.body import read_json, text_field
from tailrace.serve.doors import Door
from tailrace.serve.entries import short
from tailrace.serve.exchange import Exchange, answer
from tailrace.serve.problems import Answer, internal, json_answer, problem_answer
from tailrace.tickets.port import State, Ticket
from tailrace.wire.headers import (
    X_API_KEY,
    X_BATCH_SIZE,
    X_CACHE,
    retry_after,
)


class DoorClosed(TailraceError):
    """This door is switched off."""

    code = "door-closed"


HIT, MISS = {X_CACHE: "hit"}, {X_CACHE: "miss"}


class ReviewRoutes:
    """The endpoints over one box."""

    def __init__(self, box: ReviewBox) -> None:
        self._box = box
        self.router = APIRouter(prefix="/api", tags=["reviews"])
        self.entries: dict[tuple[str, str], App] = {}
        """The same entries, those without a parameter in their path, for the short way in."""
        text = text_body(box.settings.review.text_max_chars)
        self._add("POST", "/naive/predict", self._naive, **text, **PREDICTION)
        self._add("POST", "/limited/predict", self._reply("limited"), **text, **PREDICTION)
        self._add("POST", "/batched/predict", self._reply("batched"), **text, **PREDICTION)
        self._add("POST", "/queue/jobs", self._submit, **text, **JOB)
        self._add("GET", "/queue/jobs/{job_id}", self._job, **JOB)
        self._add("GET", "/stats", self._stats)
        self._add("GET", "/model", self._model)

    def _add(
        self,
        method: str,
        path: str,
        endpoint: Callable[[Exchange], Awaitable[Answer]],
        **schema: Any,
    ) -> None:
        async def entry(request: Request) -> Response:
            return await answer(request, self._box.clock, endpoint)

        if "{" not in path:
            self.entries[method, f"{self.router.prefix}{path}"] = short(entry, internal)
        about = documented(path)
        name = f"{method.lower()}{path}".replace("/", "_").replace("{", "").replace("}", "")
        self.router.add_api_route(
            path,
            entry,
            methods=[method],
            name=name,
            operation_id=name,
            **about,
            openapi_extra=schema,
        )

    # -- what every door does first -----------------------------------------------------------

    @contextmanager
    def _inside(self, exchange: Exchange, door: str) -> Iterator[None]:
        model = self._box.model.info
        lane = self._box.lane.name if door in self._box.doors else door
        exchange.account.through(door, lane, model.kind, model.name)
        self._box.in_progress[door] += 1
        try:
            yield
        finally:
            self._box.in_progress[door] -= 1

    async def _text(self, exchange: Exchange) -> str:
        settings = self._box.settings
        with exchange.part("parse"):
            body = await read_json(exchange.request, settings.server.body_max_bytes)
            return text_field(body, "text", settings.review.text_max_chars)

    def _known(self, exchange: Exchange, door: str, text: str) -> Any | None:
        with exchange.part("cache"):
            return self._box.pipeline.known(door, self._box.key(text), self._box.lane)

    def _work(self, exchange: Exchange, door: str, text: str) -> Work:
        deadline = exchange.deadline()
        return self._box.work(text, door, exchange.stamps, deadline, self._caller(exchange.request))

    @staticmethod
    def _caller(request: Request) -> str:
        return request.headers.get(X_API_KEY) or (request.client.host if request.client else "")

    @staticmethod
    def _wrong(
        exchange: Exchange, error: TailraceError, back_s: tuple[float, float] | None = None
    ) -> Answer:
        exchange.account.error = error.code
        return problem_answer(error, door=exchange.account.door, back_s=back_s)

    def _prediction(
        self, door: str, scores: Any, waited_s: float, service_s: float
    ) -> dict[str, Any]:
        return {
            "topics": self._box.topics.ranked(scores),
            "waited_ms": round(waited_s * 1000, 3),
            "inference_ms": round(service_s * 1000, 3),
            "door": door,
            "model": self._box.model.info.name,
        }

    # -- reply: limited and batched -----------------------------------------------------------

    def _reply(self, name: str) -> Callable[[Exchange], Awaitable[Answer]]:
        door = self._box.doors[name]

        async def endpoint(exchange: Exchange) -> Answer:
            with self._inside(exchange, name):
                return await self._through_lane(exchange, door)

        return endpoint

    async def _through_lane(self, exchange: Exchange, door: Door) -> Answer:
        box = self._box
        text = await self._text(exchange)
        known = self._known(exchange, door.name, text)
        if known is not None:
            return json_answer(self._prediction(door.name, known, 0.0, 0.0), 200, HIT)
        try:
            work = self._work(exchange, door.name, text)
            scores = await exchange.unless_left(box.pipeline.admit(door, work))
            box.cache.put(box.key(text), scores)
        except (Rejected, QueueTimeout) as error:
            back_s = door.refuse(error, box.lane.view())
            return self._wrong(exchange, error, back_s)
        except TailraceError as error:
            return self._wrong(exchange, error)
        parts = exchange.stamps.parts()
        waited_s = parts["wait"] + parts["batch"]
        body = self._prediction(door.name, scores, waited_s, sum(parts[part] for part in ON_MODEL))
        return json_answer(body, 200, {**MISS, X_BATCH_SIZE: str(work.batch_size)})

    # -- naive --------------------------------------------------------------------------------

    async def _naive(self, exchange: Exchange) -> Answer:
        with self._inside(exchange, "naive"):
            return await self._at_once(exchange)

    async def _at_once(self, exchange: Exchange) -> Answer:
        box = self._box
        text = await self._text(exchange)
        known = self._known(exchange, "naive", text)
        if known is not None:
            return json_answer(self._prediction("naive", known, 0.0, 0.0), 200, HIT)
        if box.child is None:
            raise DoorClosed("The naive door is switched off (naive.enabled).")
        with exchange.part("admit"):
            body = {"text": text, "labels": list(box.topics.labels)}
            asked = box.child.ask(body)
        try:
            made = await exchange.unless_left(asked)
        except Rejected as error:
            box.events.emit(Refused("naive", "naive", error.code))
            return self._wrong(exchange, error, (1.0, 1.0))
        except TailraceError as error:
            exchange.stamps.close("infer", box.clock.now())
            outcome = "failed" if error.code == ModelError.code else error.code
            self._tell("naive", outcome, 0.0)
            back_s = (box.child.start_s + 1, box.child.start_s)
            restarting = error.code in {"model-died", "model-restarting"}
            return self._wrong(exchange, error, back_s if restarting else None)
        for part, at in made.marks:
            exchange.stamps.close(part, at)
        exchange.stamps.close("handover", box.clock.now())
        box.cache.put(box.key(text), made.result)
        parts = exchange.stamps.parts()
        service_s = sum(parts.get(part, 0.0) for part in ON_MODEL)
        self._tell("naive", "done", service_s)
        body = self._prediction("naive", made.result, parts["wait"], service_s)
        return json_answer(body, 200, {**MISS, X_BATCH_SIZE: "1"})

    def _tell(self, door: str, outcome: str, service_s: float) -> None:
        settled = Settled(door, door, outcome, 0.0, service_s, int(outcome == "done"))
        self._box.events.emit(settled)

    # -- tickets ------------------------------------------------------------------------------

    async def _submit(self, exchange: Exchange) -> Answer:
        with self._inside(exchange, "queue"):
            return await self._ticket(exchange)

    async def _ticket(self, exchange: Exchange) -> Answer:
        box, door = self._box, self._box.doors["queue"]
        text = await self._text(exchange)
        known = self._known(exchange, "queue", text)
        with exchange.part("admit"):
            if known is not None:
                ticket = box.desk.submit_known(text, known)
            else:
                cost = box.model.cost(text, box.topics.labels)
                try:
                    caller, deadline = self._caller(exchange.request), exchange.deadline()
                    ticket = box.desk.submit(text, cost, exchange.stamps, caller, deadline)
                except Rejected as error:
                    box.events.emit(Refused(box.lane.name, door.name, error.code))
                    back_s = door.refuse(error, box.desk.view())
                    return self._wrong(exchange, error, back_s)
        location = {"Location": f"/api/queue/jobs/{ticket.id}"}
        return self._told(ticket, 202, {**(MISS if known is None else HIT), **location})

    async def _job(self, exchange: Exchange) -> Answer:
        with exchange.part("cache"):
            ticket = self._box.desk.ledger.get(exchange.request.path_params["job_id"])
        return self._told(ticket, 200, {"Cache-Control": "no-store"})

    def _told(self, ticket: Ticket, status: int, headers: dict[str, str]) -> Answer:
        place = self._box.desk.place(ticket)
        body: dict[str, Any] = {
            "job_id": ticket.id,
            "status": str(ticket.state),
            "position": place.ahead,
            "eta_seconds": None if place.eta_s is None else round(place.eta_s, 3),
        }
        if place.eta_s is not None:
            headers = headers | retry_after(place.eta_s)
        if ticket.state is State.DONE:
            body["result"] = {"topics": self._box.topics.ranked(ticket.result)}
        if ticket.error is not None:
            body["error"] = {"code": ticket.error.code, "detail": str(ticket.error)}
        if ticket.waited_s is not None and ticket.service_s is not None:
            body["waited_ms"] = round(ticket.waited_s * 1000, 3)
            body["inference_ms"] = round(ticket.service_s * 1000, 3)
        return json_answer(body, status, headers)

    # -- looking ------------------------------------------------------------------------------

    async def _stats(self, exchange: Exchange) -> Answer:  # noqa: ARG002 - the endpoint's shape
        return json_answer(snapshot(self._box), headers={"Cache-Control": "no-store"})

    async def _model(self, exchange: Exchange) -> Answer:  # noqa: ARG002 - the endpoint's shape
        return json_answer(model_card(self._box))
