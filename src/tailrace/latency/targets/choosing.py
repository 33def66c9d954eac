"""From an address and what is known of it to a target: the kind by name, or by the end of the path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from tailrace.latency.address import BadAddress
from tailrace.latency.targets.chat import Chat
from tailrace.latency.targets.doors import DOORS, door
from tailrace.latency.targets.embeddings import openai_embeddings, tei_embed
from tailrace.latency.targets.plain import PlainUrl
from tailrace.latency.targets.port import Target
from tailrace.latency.targets.providers import Effort, Provider
from tailrace.latency.targets.reranks import PATHS, Flavour, rerank

ENDS = {
    "/chat/completions": "openai-chat",
    "/embeddings": "openai-embeddings",
    "/embed": "tei",
    "/v2/rerank": "cohere-rerank",
    "/v1/rerank": "jina-rerank",
    "/rerank": "tei-rerank",
} | {path: f"door-{name}" for name, path in DOORS.items()}
"""What a path ends in, and the kind that it betrays; the longer ends first."""
KINDS = ("plain", *dict.fromkeys(ENDS.values()))
NEED_MODEL = {"openai-chat", "openai-embeddings", "cohere-rerank", "jina-rerank"}


class CannotChoose(ValueError):
    """What was said makes no target: what is missing, in one sentence."""


@dataclass(frozen=True)
class Wanted:
    """What is known of a target."""

    url: str
    kind: str | None = None
    model: str = ""
    texts: Sequence[str] = ()
    query: str = ""
    batch: int | None = None
    stream: bool = True
    output_max: int = 64
    effort: Effort | None = None
    provider: Provider | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str | None = None
    body: bytes = b""


def choose(wanted: Wanted) -> Target:
    """The target; raises CannotChoose and BadAddress."""
    kind = wanted.kind or kind_of(wanted.url)
    if kind not in KINDS:
        raise CannotChoose(f"there is no kind {kind}; choose one of {', '.join(KINDS)}")
    if kind != "plain" and (wanted.method or wanted.body):
        raise CannotChoose(f"a method or a body of its own is for --kind plain, not {kind}")
    if kind == "plain":
        method = wanted.method or ("POST" if wanted.body else "GET")
        return PlainUrl(wanted.url, method, wanted.headers, wanted.body)
    if kind in NEED_MODEL and not wanted.model:
        raise CannotChoose(f"{kind} needs the name of a model: --model NAME")
    if not wanted.texts:
        raise CannotChoose(f"{kind} needs a text to send")
    if wanted.batch is not None and (kind == "openai-chat" or kind.startswith("door-")):
        raise CannotChoose(
            f"{kind} takes one text per request; --batch is for embeddings and rerank"
        )
    return _makers()[kind](_base(wanted.url, kind), wanted)


def kind_of(url: str) -> str:
    """The kind that the path betrays; a base URL betrays none."""
    path = _path(url)
    for end in sorted(ENDS, key=len, reverse=True):
        if path.endswith(end):
            return ENDS[end]
    if path.endswith("/v1"):
        raise CannotChoose(f"{url} could be chat, embeddings or rerank: say which with --kind")
    return "plain"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError as error:
        raise BadAddress(f"{url!r} is no URL: {error}") from None


def _base(url: str, kind: str) -> str:
    """The URL without the end that the target adds itself."""
    pieces = urlsplit(url)
    path = pieces.path.rstrip("/")
    for end, of in ENDS.items():
        if of == kind:
            path = path.removesuffix(end)
    return urlunsplit((pieces.scheme, pieces.netloc, path, "", ""))


def _makers() -> dict[str, Callable[[str, Wanted], Target]]:
    makers: dict[str, Callable[[str, Wanted], Target]] = {
        "openai-chat": _chat,
        "openai-embeddings": lambda base, w: openai_embeddings(
            base, w.texts, model=w.model, batch=w.batch or 1, headers=w.headers
        ),
        "tei": lambda base, w: tei_embed(base, w.texts, batch=w.batch or 1, headers=w.headers),
    }
    makers |= {f"{flavour}-rerank": _ranker(flavour) for flavour in PATHS}
    makers |= {f"door-{name}": _door(name) for name in DOORS}
    return makers


def _chat(base: str, wanted: Wanted) -> Chat:
    return Chat(
        base,
        wanted.texts,
        wanted.model,
        stream=wanted.stream,
        output_max=wanted.output_max,
        effort=wanted.effort,
        provider=wanted.provider,
        headers=wanted.headers,
    )


def _ranker(flavour: Flavour) -> Callable[[str, Wanted], Target]:
    def make(base: str, wanted: Wanted) -> Target:
        return rerank(
            base,
            wanted.texts,
            flavour=flavour,
            query=wanted.query or wanted.texts[0],
            model=wanted.model,
            batch=wanted.batch or 8,
            headers=wanted.headers,
        )

    return make


def _door(name: str) -> Callable[[str, Wanted], Target]:
    return lambda base, wanted: door(base, name, wanted.texts, wanted.headers)
