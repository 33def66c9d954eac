"""Both legs' answers to labelled queries, collected once so that many rules can be tried on them."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailrace.apps.books.catalogue import shipped_documents
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.apps.books.reranking import TOKENS_MAX
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.search.analyzers import AnalyzerName, analyzer_named
from tailrace.search.fuse import Votes, equal_votes, fuse
from tailrace.search.hybrid import WINDOW
from tailrace.search.ingest import ingest
from tailrace.search.passages import passage
from tailrace.search.quality import DEPTH, Labelled
from tailrace.search.vote import VoteRule, asked_terms
from tailrace.stores.port import KeywordLeg, VectorLeg
from tailrace.stores.sqlite import SqliteStore

PHRASES = 150
PHRASE_WORDS = (3, 6)
PHRASE_SEED = 5


@dataclass(frozen=True, slots=True)
class Legs:
    """What both legs found for one query."""

    query: Labelled
    terms: Sequence[str]
    asked: Sequence[str]
    words: KeywordLeg
    near: VectorLeg


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to make a ranking of both: `by` is the leg, or whose coverage decides the votes."""

    by: str
    k: float = 20.0
    least: float = 1.0
    most: float = 1.0

    @property
    def name(self) -> str:
        """As the tables print it."""
        numbers = f" {self.k:g} / {self.least:g} / {self.most:g}"
        return self.by + ("" if self.by in {"keyword", "vector"} else numbers)

    def ranking(self, legs: Legs) -> list[str]:
        """The first documents."""
        if self.by in {"keyword", "vector"}:
            hits = legs.words.hits if self.by == "keyword" else legs.near.hits
            return [hit.id for hit in hits[:DEPTH]]
        fused = fuse(legs.words.hits, legs.near.hits, self._votes(legs), k=self.k)
        return [one.id for one in fused[:DEPTH]]

    def _votes(self, legs: Legs) -> Votes:
        rule = VoteRule(self.least, self.most)
        if self.by == "each document":
            return rule.votes(legs.words, legs.asked)
        if self.by == "best document":
            first = rule.votes(legs.words, legs.terms).keyword[:1]
            return Votes(first * len(legs.words.hits), 1.0)
        return equal_votes(legs.words.hits)


def collected(
    sets: dict[str, list[Labelled]],
    model: ModelEmbedder,
    folder: Path,
    analyzers: Sequence[AnalyzerName] = ("bigrams",),
) -> dict[str, dict[str, list[Legs]]]:
    """The legs of every query by analyser and set, over the catalogue that ships."""
    every = [query for queries in sets.values() for query in queries]
    asked = asyncio.run(_vectors(model, every))
    made = {}
    for name in analyzers:
        store = SqliteStore(folder / f"{name}.db", analyzer_named(name))
        store.add_space(model.space, model.canary)
        for _ in ingest(store, model.space, model.documents_now, shipped_documents()):
            pass
        made[name] = {
            kind: [_legs(store, query, asked[query.text]) for query in queries]
            for kind, queries in sets.items()
        }
        store.close()
    return made


def reread(model: OnnxCrossEncoder, rule: Rule, legs: Sequence[Legs]) -> list[list[str]]:
    """The rankings of a rule, their first documents in the order of a cross-encoder's scores."""
    texts = {document.id: passage(document) for document in shipped_documents()}
    found = []
    for one in legs:
        ids = rule.ranking(one)
        asked = model.plain(one.query.text)
        pairs = [
            model.fit(asked, model.plain(texts[id_]), text_first=True, text_max=TOKENS_MAX)
            for id_ in ids
        ]
        order = np.argsort(-model.logits(pairs), kind="stable") if ids else []
        found.append([ids[place] for place in order])
    return found


async def _vectors(model: ModelEmbedder, queries: Sequence[Labelled]):
    return {query.text: (await model.query(query.text, 0.0))[0] for query in queries}


def _legs(store: SqliteStore, query: Labelled, vector) -> Legs:
    terms = store.analyzer.query_terms(query.text)
    asked = asked_terms(store.analyzer, query.text, terms)
    return Legs(
        query,
        terms,
        asked,
        store.keyword(terms, WINDOW),
        store.vector(vector, WINDOW)[0],
    )


def lexical_questions() -> list[Labelled]:
    """Phrases cut out of descriptions: where keywords alone know the answer."""
    draw = random.Random(PHRASE_SEED)
    books = [
        (document.id, words)
        for document in shipped_documents()
        if len(words := (document.description or "").rstrip(".").split()) > PHRASE_WORDS[1]
    ]
    found = []
    for number in range(PHRASES):
        id_, words = draw.choice(books)
        size = draw.randint(*PHRASE_WORDS)
        first = draw.randint(0, len(words) - size)
        text = " ".join(words[first : first + size])
        found.append(Labelled(f"lexical-{number:03}", text, "lexical", {id_: 2}))
    return found
