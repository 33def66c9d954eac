"""What the house asks of a document store: protocols and data only.

A store keeps documents, finds them by terms (the keyword leg) and by vectors (the vector leg), and never
compares vectors of two spaces. It is asked from any thread and knows no model, no fusion, no HTTP.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

FIELDS = ("title", "author", "alias", "keywords", "description")
"""The fields of the keyword leg."""

FIELD_WEIGHTS: Mapping[str, float] = {
    "title": 4.0,
    "author": 3.0,
    "alias": 3.0,
    "keywords": 1.5,
    "description": 1.0,
}
"""How much a term counts in each field, by default."""

TERMS_MAX = 64
"""Terms of one query that are looked up; an analyser gives no more."""

MATCHED_MAX = 50
"""Hits of the keyword leg, from the best on, that tell which terms stand where."""

SPACES_REMEMBERED = 64
"""Spaces whose fingerprints are kept in mind."""


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be found. None: not known."""

    id: str
    title: str
    subtitle: str | None = None
    author: str | None = None
    translator: str | None = None
    publisher: str | None = None
    year: int | None = None
    category: str | None = None
    """A path: parts between slashes, the widest first."""
    keywords: tuple[str, ...] = ()
    description: str | None = None
    aliases: tuple[str, ...] = ()
    """Other spellings by which people ask for it: original title, variants of names."""

    @property
    def digest(self) -> str:
        """Changes whenever anything of the document does."""
        body = json.dumps(self.fields(), ensure_ascii=True, sort_keys=True)
        return hashlib.blake2b(body.encode(), digest_size=16).hexdigest()

    def fields(self) -> dict[str, object]:
        """Every field by its name; dataclasses.asdict would copy each of them at ten times the price."""
        return {name: getattr(self, name) for name in self.__slots__}

    def texts(self) -> dict[str, str]:
        """What the keyword leg reads, by field; each of FIELDS is there."""
        category = (self.category or "").replace("/", "\n")
        parts: dict[str, Iterable[str | None]] = {
            "title": (self.title, self.subtitle),
            "author": (self.author, self.translator),
            "alias": self.aliases,
            "keywords": (*self.keywords, category, self.publisher),
            "description": (self.description,),
        }
        return {name: "\n".join(part for part in parts[name] if part) for name in FIELDS}


class Analyzer(Protocol):
    """Turns text into terms.

    A term holds no white space, and of ASCII only `a-z`, `0-9`, `+` and `#`; any text whatever gives
    terms (perhaps none) and never an error.
    """

    @property
    def fingerprint(self) -> str:
        """Changes whenever the terms of a text could."""

    def document_terms(self, text: str) -> list[str]:
        """The terms of a field, as often as they occur. Lines are texts of their own."""

    def query_terms(self, text: str) -> list[str]:
        """The distinct terms of a query, at most TERMS_MAX."""


@dataclass(frozen=True, slots=True)
class Space:
    """What makes two vectors comparable. Any difference is another space."""

    model: str
    file_hash: str
    quantisation: str
    query_prefix: str
    document_prefix: str
    pooling: str
    normalised: bool
    dimension: int
    tokenizer: str

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that stand for all of it."""
        return _fingerprint(self)


@lru_cache(SPACES_REMEMBERED)
def _fingerprint(space: Space) -> str:
    body = json.dumps(asdict(space), ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(body.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Vectors that know their space: float32, one row each, finite."""

    space: Space
    rows: FloatArray

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Canary:
    """A text and its vector on the day the space was made; another vector today is another model."""

    text: str
    vector: FloatArray


SpaceState = Literal["active", "backfilling", "kept"]
"""active: searched. backfilling: being filled beside it. kept: was active, for the way back."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredSpace:
    """A space as a store holds it."""

    space: Space
    state: SpaceState
    canary: Canary | None
    vectors: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents may be found; what is None does not restrict."""

    category: str | None = None
    """This path and everything below it."""
    year_from: int | None = None
    year_to: int | None = None
    author: str | None = None
    """Part of the author's name; case and spaces do not count."""


ALL = Filter()


@dataclass(frozen=True, slots=True)
class Hit:
    """One document in one leg. Ranks start at 1; equal scores stand in the order of their ids."""

    id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class KeywordHit(Hit):
    """A document of the keyword leg, with the query's terms that any of its fields holds.

    They are looked up for the best MATCHED_MAX; of a later hit `matched` is empty.
    """

    matched: frozenset[str] = frozenset()

    def coverage(self, terms: frozenset[str]) -> float:
        """The share of `terms` that it holds, 0 to 1."""
        return len(self.matched & terms) / len(terms) if terms else 0.0


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """What the keyword leg found."""

    hits: tuple[KeywordHit, ...]
    terms: Mapping[str, int]
    """How many documents hold each of the query's terms."""
    exact: bool
    """Whether every term was looked up; very frequent ones may be left out."""
    short: bool = False


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """What the vector leg found."""

    hits: tuple[Hit, ...]
    exact: bool
    """Whether every vector that the filter lets through was compared."""
    short: bool
    """Whether there are fewer hits than asked for although more documents fit the filter."""
    space: str
    """The fingerprint of the space that was searched."""


Near = Callable[[Vectors, int], list[VectorLeg]]
"""The nearest documents, so many at most, by inner product, for each query; several share one scan.

Raises SpaceMismatch where the queries are of another space than the one that was made ready.
"""


@dataclass(frozen=True, slots=True)
class Upserted:
    """What an upsert did, by count."""

    inserted: int
    updated: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The present numbers of a store."""

    engine: str
    documents: int
    generation: int
    analyzer: str
    coverage: Mapping[str, float]
    """The share of documents that have each field."""
    vector_comparisons: int
    """Vectors compared with a query since this process opened the store."""
    detail: Mapping[str, str | int | float]


Indexed = Callable[[int, int], object]
"""Told while documents are indexed again: how many are done, of how many."""


class Store(Protocol):
    """Documents, their terms and their vectors. What is written is found by the next search.

    Every method may raise StoreUnavailable; what a writer changes happens whole or not at all.
    """

    @property
    def analyzer(self) -> Analyzer:
        """What turns text into the terms of this store."""

    def upsert(self, documents: Sequence[Document], *vectors: Vectors) -> Upserted:
        """Insert or replace documents, each of `vectors` giving one row per document.

        Of one id given twice the last counts. A changed document loses its vectors of spaces that are
        not given. Raises AnalyzerMismatch where another process has indexed the store by another
        analyser, SpaceMismatch for vectors of a space the store does not hold, and where
        vectors are given but none of the active space: they would not be found.
        """

    def put_vectors(self, documents: Sequence[Document], vectors: Vectors) -> int:
        """Vectors for documents that are there as they are; others are passed over.

        Returns how many it took. Raises SpaceMismatch for a space the store does not hold.
        """

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents; returns how many there were."""

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Documents in the order asked for; unknown ids are left out."""

    def unfinished(self, documents: Sequence[Document], space: Space) -> list[Document]:
        """Those that are not there as they are, or have no vector in the space: what an ingest must do."""

    def missing(self, space: Space, limit: int) -> list[Document]:
        """Documents without a vector in the space, by id: what a backfill must do."""

    def keyword(self, terms: Sequence[str], limit: int, where: Filter = ALL) -> KeywordLeg:
        """The best `limit` documents that hold any of the terms (see `analyzer.query_terms`)."""

    def near(self, space: Space, where: Filter = ALL, *, backfilling: bool = False) -> Near:
        """A space ready to be searched, with all that was written before; for one search.

        What needs no vector yet is done here: it fits beside the making of one. Raises SpaceMismatch unless
        the space is the active one; with `backfilling` it may be any that is held.
        """

    def vector(
        self, queries: Vectors, limit: int, where: Filter = ALL, *, backfilling: bool = False
    ) -> list[VectorLeg]:
        """`near` the space of the queries, and asked at once."""

    def similar(self, id: str, limit: int, where: Filter = ALL) -> VectorLeg:  # noqa: A002
        """The nearest to a document, itself left out; UnknownDocument where it is not, or has no vector."""

    def spaces(self) -> list[StoredSpace]:
        """Every space held, oldest first."""

    def space(self) -> StoredSpace | None:
        """The active space."""

    def add_space(self, space: Space, canary: Canary | None = None) -> StoredSpace:
        """Make a space: active where there is none, else backfilling. Made already: as it is."""

    def switch(self, space: Space) -> None:
        """Make this space the active one, at once; the one before is kept for the way back.

        Raises UnknownSpace where it is not held.
        """

    def drop(self, space: Space) -> None:
        """Forget a space and its vectors. Raises SpaceInUse for the active one."""

    def build_index(self, space: Space) -> bool:
        """Build, beside the traffic, what a space has grown to need for its searches to stay fast.

        Returns whether anything was built: nothing is where it is there already, or would not be used.
        Raises UnknownSpace.
        """

    def categories(self) -> dict[str, int]:
        """How many documents each category path has."""

    def stats(self) -> StoreStats:
        """The present numbers."""

    def close(self) -> None:
        """Let go of files and connections."""
