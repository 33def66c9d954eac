"""The configuration of the model server: which models, what each takes in, who may ask."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tailrace.cache.memory import MemoryCache
from tailrace.cache.port import Cache
from tailrace.cache.sqlite import SqliteCache
from tailrace.models.cache import cache_root
from tailrace.serve.local_settings import ModelOffer, ReadySettings
from tailrace.serve.remote_settings import RemoteOffer
from tailrace.serve.settings import ServerSettings, Settings, TracingSettings

CACHE_FILE = "answers.sqlite3"


class LimitSettings(Settings):
    """What one request may bring."""

    items_max: int = Field(2048, ge=1)
    """The most texts in one request."""
    text_max_chars: int = Field(100_000, ge=1)
    """The longest text; what a model cannot read of it is cut, and the answer says so."""
    bulk_items: int = Field(16, ge=1)
    """A request with more items than this is bulk: it lets interactive work pass."""
    bulk_yields_tokens: float = Field(20_000, ge=0)
    """How many tokens of later interactive work a bulk item lets pass."""


AnyOffer = Annotated[ModelOffer | RemoteOffer, Field(discriminator="kind")]

EMBEDDER = ModelOffer(
    name="multilingual-e5-small",
    kind="embedding",
    aliases=("intfloat/multilingual-e5-small", "text-embedding-3-small", "default"),
)
RERANKER = ModelOffer(
    name="review-cross-encoder", kind="rerank", aliases=("rerank",), pairs="text-first"
)


class ApiServerSettings(ServerSettings):
    """Where the model server listens, who may call it from a page, what it writes down."""

    port: int = Field(8080, ge=0, le=65535)
    """The port to listen on; 0 takes any free one."""
    body_max_bytes: int = Field(32 << 20, ge=1024)
    """The largest request body."""
    drain_notice_s: float = Field(0.0, ge=0)
    """How long the listener stays open after SIGTERM at least, so that a load balancer sees /readyz say no before it is cut off; it stays open as long as work inside goes on anyway."""  # noqa: E501
    access_log: Literal["off", "json"] = "off"
    """`json` writes a line for every answer to standard error; never a text or a key."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the server; none by default, `["*"]` allows every page."""


class KeySettings(Settings):
    """Who may ask; with no keys anybody may."""

    file: Path | None = None
    """A file with one key a line; `name:key` gives a caller a name for logs and metrics."""


class DialectSettings(Settings):
    """Where the dialects' own servers disagree with themselves or with each other."""

    tei_validation_status: Literal[422, 413] = 422
    """What TEI's entries answer to input that cannot be used; releases up to 1.8 answered 413."""
    openai_errors: Literal["nested", "flat"] = "nested"
    """`nested` as OpenAI answers, `flat` as TEI does on the same path."""


class AnswerCacheSettings(Settings):
    """Answers kept by input."""

    kind: Literal["memory", "sqlite"] = "memory"
    """`sqlite` keeps them in a file too, so that a restart remembers them."""
    path: Path | None = None
    """The file of `sqlite`; by default answers.sqlite3 in the cache folder."""
    entries_max: int = Field(10_000, ge=0)
    """How many, of all models together; 0 keeps none."""

    def cache(self, cache_dir: Path | None) -> Cache:
        """The cache itself, open."""
        if self.kind == "memory":
            return MemoryCache(self.entries_max)
        return SqliteCache(self.path or (cache_dir or cache_root()) / CACHE_FILE, self.entries_max)


class ApiSettings(Settings):
    """The whole configuration file."""

    server: ApiServerSettings = ApiServerSettings()
    models: Annotated[tuple[AnyOffer, ...], Field(min_length=1)] = (EMBEDDER, RERANKER)
    """The models on offer; the first of a kind answers requests that name none."""
    threads: int = Field(0, ge=0)
    """Cores for all lanes together; 0 takes all that this process may use."""
    cache_dir: Path | None = None
    """Where converted and fetched models are kept; by default the user's cache folder."""
    limits: LimitSettings = LimitSettings()
    keys: KeySettings = KeySettings()
    ready: ReadySettings = ReadySettings()
    cache: AnswerCacheSettings = AnswerCacheSettings()
    dialects: DialectSettings = DialectSettings()
    tracing: TracingSettings = TracingSettings()

    @model_validator(mode="after")
    def _names_differ(self) -> "ApiSettings":
        names = [name for offer in self.models for name in (offer.name, *offer.aliases)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names must differ between models; given twice: {', '.join(twice)}")
        return self
