"""The four doors of a review box: three that answer at once, and one that gives a ticket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.latency.exchange import Exchange
from tailrace.latency.partition import Figure
from tailrace.latency.targets.port import Ask, Reading
from tailrace.latency.targets.posted import BadAnswer, Posted

DOORS = {
    "naive": "/naive/predict",
    "limited": "/limited/predict",
    "batched": "/batched/predict",
    "queue": "/queue/jobs",
}
UNDER_WAY = {"queued", "running"}
MS = 1_000_000


def door(
    url: str, name: str, texts: Sequence[str], headers: Mapping[str, str] | None = None
) -> "Posted | TicketDoor":
    """The door `name` of the API at `url` (".../api")."""
    endpoint = url.rstrip("/") + DOORS[name]
    understand = _ticket if name == "queue" else _topics
    posted = Posted(f"door-{name}", endpoint, texts, _body, understand, headers=headers or {})
    return TicketDoor(posted) if name == "queue" else posted


def _body(chosen: Sequence[str]) -> Mapping[str, Any]:
    return {"text": chosen[0]}


def _topics(answer: Any, count: int) -> Mapping[str, Any]:
    del count
    topics = answer.get("topics") if isinstance(answer, Mapping) else None
    if not isinstance(topics, list):
        raise BadAnswer("no topics in the answer: this is no door of a review box")
    return {"topics": len(topics)}


def _ticket(answer: Any, count: int) -> Mapping[str, Any]:
    del count
    if not isinstance(answer, Mapping) or not {"job_id", "status"} <= answer.keys():
        raise BadAnswer("no ticket in the answer: this is no door of a review box")
    return {"position": answer["position"]} if isinstance(answer.get("position"), int) else {}


@dataclass(frozen=True)
class TicketDoor:
    """The door that answers with a ticket, which is asked for until it is done."""

    posted: Posted

    @property
    def name(self) -> str:
        """Kind and URL."""
        return self.posted.name

    def ask(self, index: int) -> Ask:
        """Take a ticket."""
        return self.posted.ask(index)

    def read(self, exchange: Exchange) -> Reading:
        """The ticket's state: where to ask again, or the box's own figures once it is done."""
        reading = self.posted.read(exchange)
        if reading.problem is not None:
            return reading
        ticket = reading.answer
        if ticket["status"] in UNDER_WAY:
            here = (
                exchange.url if exchange.method == "GET" else f"{exchange.url}/{ticket['job_id']}"
            )
            return Reading(again=here, detail=reading.detail)
        if ticket["status"] != "done":
            return Reading(problem=f"the ticket ended as {ticket['status']}")
        inside = {
            part: Figure(round(value * MS), "declared")
            for part, name in (("queue", "waited_ms"), ("infer", "inference_ms"))
            if isinstance(value := ticket.get(name), int | float)
        }
        return Reading(inside=inside, resolution_ns=len(inside) * 1000)
