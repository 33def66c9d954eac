"""Builds the offers of models elsewhere: client, lane, limit, door; and ties fallbacks at start."""

from dataclasses import dataclass

from tailrace.cache.memory import MemoryCache
from tailrace.cache.port import Cache
from tailrace.core.admission import AllOf
from tailrace.core.batch import BatchRule
from tailrace.core.clock import Clock
from tailrace.core.estimate import ServiceTime
from tailrace.core.events import Events
from tailrace.core.lane import Lane, Runner
from tailrace.models.remote import RemoteChat, RemoteEmbedder, remote_info
from tailrace.models.upstream import Upstream
from tailrace.policies.upstream_pause import UpstreamPause
from tailrace.serve.adapting import Adapting
from tailrace.serve.catalogue import Offer
from tailrace.serve.chat import ServedChat, chat_runner
from tailrace.serve.doors import Door
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.fallback import FallbackEmbedder
from tailrace.serve.remote_embedding import ServedRemoteEmbedder, embedding_runner
from tailrace.serve.remote_settings import RemoteOffer, StandInSettings
from tailrace.serve.served import ServedModel
from tailrace.serve.settings import BadConfiguration

HOPED_S = 0.02
"""What a run is hoped to take before the first: a guess too high would refuse deadlines for ever."""
SEATS = 256
"""Seats of a door without a waiting room."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every offer is built into."""

    clock: Clock
    events: Events
    cache: Cache
    bulk_yields: float


def open_remote(offer: RemoteOffer, around: Surroundings) -> tuple[Offer, Upstream]:
    """A model elsewhere behind its lane; nothing is asked of it yet.

    Raises:
        ModelUnavailable: the key's environment variable is not set.

    """
    upstream = Upstream(
        offer.url,
        key_env=offer.key_env,
        timeouts=offer.timeouts.timeouts(),
        connections=offer.slots_max,
        idle_s=offer.idle_s,
    )
    if offer.kind == "remote-embedding":
        runner = embedding_runner(RemoteEmbedder(upstream, offer.model))
        return ServedRemoteEmbedder(_served(offer, "embedding", runner, around)), upstream
    runner = chat_runner(RemoteChat(upstream, offer.model), around.clock)
    return ServedChat(_served(offer, "chat", runner, around), around.clock), upstream


def _served(offer: RemoteOffer, kind: str, runner: Runner, around: Surroundings) -> ServedModel:
    limit = None if isinstance(offer.slots, int) else offer.slots.limit()
    seats = offer.door.seats(SEATS)
    lane = Lane(
        offer.name,
        runner,
        clock=around.clock,
        slots=offer.slots_max if limit is None else limit.limit,
        batch=BatchRule(offer.items_max, window_s=offer.window_ms / 1000),
        service=ServiceTime(HOPED_S),
        events=around.events,
        waiting_max=seats + offer.slots_max,
        abandons=True,
    )
    if limit is not None:
        around.events.subscribe(Adapting(offer.name, lane, limit, around.clock))
    admission = AllOf([*offer.door.admission().policies, UpstreamPause(offer.pause_wait_s)])
    return ServedModel(
        offer.name,
        remote_info(offer.name, offer.url, offer.model, kind, offer.tokens_max),
        lane,
        Door(offer.name, lane, admission, seats=seats),
        cache=around.cache if kind == "embedding" else MemoryCache(0),
        clock=around.clock,
        bulk_yields=around.bulk_yields,
    )


def tie(settings: list[StandInSettings], offers: list[Offer]) -> list[Offer]:
    """The offers, each with its fallback where it names one.

    Raises:
        BadConfiguration: with every fallback that cannot be.

    """
    by_name = {
        offer.served.name: (stands, offer) for stands, offer in zip(settings, offers, strict=True)
    }
    mistakes: list[tuple[str, str]] = []
    tied: list[Offer] = []
    for number, (stands, offer) in enumerate(zip(settings, offers, strict=True)):
        made = offer
        if stands.fallback is not None:
            found = by_name.get(stands.fallback)
            wrong = _mistake(stands, offer, found)
            if wrong or found is None:
                mistakes.append((f"models.{number}.fallback", wrong))
            else:
                made = _tied(offer, found[1], frozenset(stands.fallback_on))
        tied.append(made)
    if mistakes:
        raise BadConfiguration(mistakes)
    return tied


def _mistake(
    stands: StandInSettings, offer: Offer, found: tuple[StandInSettings, Offer] | None
) -> str:
    """What is wrong with a fallback, empty for nothing."""
    if found is None:
        return f"there is no model {stands.fallback!r} here"
    theirs, other = found
    if other is offer:
        return "a model cannot stand in for itself"
    if isinstance(offer, ServedChat) and isinstance(other, ServedChat):
        return ""
    if not (isinstance(offer, ServedEmbedder) and isinstance(other, ServedEmbedder)):
        return f"{stands.fallback!r} is of another kind, or of a kind that has no fallback"
    same = offer.served.info.fingerprint == other.served.info.fingerprint
    if same or (stands.space is not None and stands.space == theirs.space):
        return ""
    return (
        f"{stands.fallback!r} is another embedding model: its vectors do not compare with those of "
        f"{offer.served.name!r}. If both do live in one space, give both offers the same `space`"
    )


def _tied(offer: Offer, other: Offer, codes: frozenset[str]) -> Offer:
    if isinstance(offer, ServedChat) and isinstance(other, ServedChat):
        offer.fallback = (other, codes)
        return offer
    assert isinstance(offer, ServedEmbedder)
    assert isinstance(other, ServedEmbedder)
    return FallbackEmbedder(offer, other, codes)
