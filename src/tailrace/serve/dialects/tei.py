"""The dialect of text-embeddings-inference: /embed, /rerank, /predict and their company.

Shapes, error bodies and timing headers as TEI's clients read them; every answer is JSON, also where TEI
sends plain text. It may name a model (`model`), which TEI cannot. /rerank and /health are in shared.py.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailrace.core.errors import InputError, TailraceError
from tailrace.serve import schemas
from tailrace.serve.classifying import Classified, ServedClassifier
from tailrace.serve.dialect import Dialect, Endpoint, safe, shaped, told
from tailrace.serve.dialects.tei_shapes import DIRECTIONS, about, by_label, is_ids, kind_of, timing
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.exchange import Exchange
from tailrace.serve.fields import choice, flag, model_named, prompt_of, whole
from tailrace.serve.ops import NotReady
from tailrace.serve.problems import Answer, json_answer
from tailrace.serve.reranking import Scored, ServedReranker
from tailrace.serve.served import Answered, NotOffered, Terms


class Tei(Dialect):
    """What a text-embeddings-inference server answers."""

    tag = "tei"

    def add_routes(self) -> None:
        """TEI's own paths, and all of them once more below /tei/MODEL, as if there were but one model."""
        for prefix in ("", "/tei/{model}"):
            for path, endpoint, body, summary in self._entries():
                self.post(prefix + path, endpoint, body, summary=summary)
            self.get(f"{prefix}/info", self._info, summary="What the first model, or ?model=, is")
        self.post("/tei/{model}/rerank", self.rerank, schemas.TEI_RERANK, summary="Rank texts")
        for path in ("", "/health"):
            self.get(f"/tei/{{model}}{path}", self.health, public=True, summary="200 if ready")

    def _entries(self) -> list[tuple[str, Endpoint, schemas.Schema, str]]:
        by_body = "Embed, compare or rerank, by what the body holds"
        return [
            ("/embed", self._embed, schemas.TEI_EMBED, "Embed texts"),
            ("/embed_all", self._embed_all, schemas.TEI_EMBED, "Embed every token of texts"),
            (
                "/embed_sparse",
                self._embed_sparse,
                schemas.TEI_EMBED,
                "Refused: none here is sparse",
            ),
            (
                "/predict",
                self._predict,
                schemas.TEI_PREDICT,
                "Score pairs, or texts against labels",
            ),
            ("/similarity", self._similarity, schemas.TEI_SIMILARITY, "Compare sentences with one"),
            ("/tokenize", self._tokenize, schemas.TEI_TOKENIZE, "Take texts apart into tokens"),
            ("/decode", self._decode, schemas.TEI_DECODE, "Put tokens together again"),
            ("/", self._any, schemas.TEI_ANY, by_body),
            ("/invocations", self._any, schemas.TEI_ANY, by_body),
        ]

    def on_error(self, error: TailraceError) -> Answer:
        """{"error", "error_type"}."""
        status, kind = kind_of(error, self.front.manners.tei_validation_status)
        return shaped(error, status, {"error": safe(error), "error_type": kind})

    async def health(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        """200 while work is taken in; the body serves Infinity's and llama.cpp's clients too."""
        del exchange, body
        ready, why = self.front.ready()
        if not ready:
            return self.on_error(NotReady(why))
        return json_answer({"status": "ok", "unix": time.time()})

    # -- embedding ----------------------------------------------------------------------------

    async def _embed(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.embedder(_named(exchange, body))
            texts = self._texts(body.get("inputs"), model)
            prompt = prompt_of(body, model.prompts)
            normalize = flag(body, "normalize", default=True)
            dimensions = whole(body, "dimensions")
            choice(body, "encoding_format", ("float",))
            terms, left = self._reading(exchange, body, len(texts))
        made = await model.embed(
            exchange,
            texts,
            terms,
            prompt=prompt,
            normalize=normalize,
            dimensions=dimensions,
            left=left,
        )
        return self._answer(exchange, made.vectors, made.answered, texts)

    async def _embed_all(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.embedder(_named(exchange, body))
            texts = self._texts(body.get("inputs"), model)
            prompt = prompt_of(body, model.prompts)
            terms, left = self._reading(exchange, body, len(texts))
        made = await model.embed_tokens(exchange, texts, terms, prompt=prompt, left=left)
        return self._answer(exchange, made.values, made, texts)

    async def _embed_sparse(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        model = self.front.catalogue.embedder(_named(exchange, body))
        raise NotOffered(f"{model.served.name} gives dense vectors; ask /embed.")

    async def _similarity(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.embedder(_named(exchange, body))
            inputs, more = body.get("inputs"), body.get("parameters") or {}
            if not isinstance(inputs, dict) or not isinstance(more, dict):
                raise InputError("`inputs` and `parameters` must be objects.")
            source = self.check_text(inputs.get("source_sentence"), "inputs.source_sentence")
            given = inputs.get("sentences")
            if not isinstance(given, list):
                raise InputError("`inputs.sentences` must be a list of strings.")
            self.check_count(given, "inputs.sentences")
            others = [self.check_text(t, f"inputs.sentences.{i}") for i, t in enumerate(given)]
            terms, left = self._reading(exchange, more, len(others) + 1)
            prompt = prompt_of(more, model.prompts)
        texts = [source, *others]
        made = await model.embed(exchange, texts, terms, prompt=prompt, left=left)
        likeness = np.stack(made.vectors[1:]) @ made.vectors[0]
        return self._answer(exchange, likeness, made.answered, texts)

    # -- pairs --------------------------------------------------------------------------------

    async def rerank(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        """Texts by how well they fit the query, the best first, as a bare list."""
        with exchange.part("parse"):
            model = self.front.catalogue.reranker(_named(exchange, body))
            query = self.check_text(body.get("query"), "query")
            given = body.get("texts")
            if not isinstance(given, list):
                raise InputError("`texts` must be a list of strings.")
            self.check_count(given, "texts")
            texts = [self.check_text(t, f"texts.{i}", empty=True) for i, t in enumerate(given)]
            raw = flag(body, "raw_scores", default=False)
            with_text = flag(body, "return_text", default=False)
            terms, left = self._reading(exchange, body, len(texts))
        made = await model.rerank(exchange, query, texts, terms, left=left)
        scores = made.scores(raw=raw)
        ranks: list[dict[str, Any]] = [
            {"index": i, "score": scores[i], **({"text": texts[i]} if with_text else {})}
            for i in made.best_first()
        ]
        return self._answer(exchange, ranks, made.answered, [query, *texts])

    async def _predict(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            model = self.front.catalogue.classifier(_named(exchange, body))
            raw = flag(body, "raw_scores", default=False)
            rows, single = self._sequences(body.get("inputs"))
            alone = len(rows[0]) == 1
            if any((len(row) == 1) != alone for row in rows):
                raise InputError("`inputs` mixes texts and pairs; send one kind at a time.")
            items = len(rows) * (model.inputs_per_text if alone else 1)
            self.check_number(items, "inputs")
            terms, left = self._reading(exchange, body, items)
        made: Scored | Classified
        if alone:
            made = await model.classify(exchange, [row[0] for row in rows], terms, left=left)
        else:
            made = await model.score(exchange, [(row[0], row[1]) for row in rows], terms, left=left)
        labels = model.labels if alone else model.pair_labels
        predictions = by_label(made, labels, raw=raw)
        reply = predictions[0] if single else predictions
        return self._answer(exchange, reply, made.answered, [text for row in rows for text in row])

    def _sequences(self, given: Any) -> tuple[list[list[str]], bool]:
        """Texts and pairs, and whether it was one: a flat list of two strings is one pair."""
        if isinstance(given, str):
            return [[self.check_text(given, "inputs")]], True
        if not isinstance(given, list):
            raise InputError(
                "`inputs` must be a text, a pair, or a list of lists of one or two texts."
            )
        self.check_count(given, "inputs")
        single = all(isinstance(item, str) for item in given)
        rows = []
        for i, row in enumerate([given] if single else given):
            if not isinstance(row, list) or len(row) not in {1, 2}:
                raise InputError(f"`inputs.{i}` must be a list of one or two texts.")
            rows.append([self.check_text(text, f"inputs.{i}") for text in row])
        return rows, single

    # -- tokens -------------------------------------------------------------------------------

    async def _tokenize(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            offer = self.front.catalogue.any(_named(exchange, body))
            given = body.get("inputs")
            given = [given] if isinstance(given, str) else given
            if not isinstance(given, list):
                raise InputError("`inputs` must be a string or a list of strings.")
            self.check_count(given, "inputs")
            texts = [self.check_text(text, f"inputs.{i}") for i, text in enumerate(given)]
            special = flag(body, "add_special_tokens", default=True)
            prefix = ""
            if isinstance(offer, ServedEmbedder):
                prefix = offer.model.prefix(prompt_of(body, offer.prompts) or offer.default_prompt)
        vocabulary = offer.model.vocabulary

        def take_apart() -> list[Any]:
            return [vocabulary.pieces(prefix + text, special=special) for text in texts]

        with exchange.part("tokenize"):
            made = await exchange.unless_left(offer.threads.call(take_apart))
        return json_answer(made)

    async def _decode(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        with exchange.part("parse"):
            vocabulary = self.front.catalogue.any(_named(exchange, body)).model.vocabulary
            given = body.get("ids")
            if not isinstance(given, list):
                raise InputError("`ids` must be a list of ids, or a list of such lists.")
            self.check_count(given, "ids")
            rows = given if isinstance(given[0], list) else [given]
            if not all(is_ids(row) for row in rows):
                raise InputError("`ids` must be a list of ids, or a list of such lists.")
            skip = flag(body, "skip_special_tokens", default=True)
        with exchange.part("tokenize"):
            texts = [vocabulary.decode(row, skip_special=skip) for row in rows]
        return json_answer(texts)

    # -- what is shared -----------------------------------------------------------------------

    async def _any(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        if "texts" in body:
            return await self.rerank(exchange, body)
        if isinstance(body.get("inputs"), dict):
            return await self._similarity(exchange, body)
        if isinstance(
            self.front.catalogue.any(_named(exchange, body)), ServedReranker | ServedClassifier
        ):
            return await self._predict(exchange, body)
        return await self._embed(exchange, body)

    async def _info(self, exchange: Exchange, body: dict[str, Any]) -> Answer:
        asked = exchange.request.query_params.get("model")
        offer = self.front.catalogue.any(_named(exchange, body) or asked)
        return json_answer(about(offer, self.front.limits.items_max))

    def _texts(self, given: Any, model: ServedEmbedder) -> list[str]:
        """Texts; ids are those that /tokenize gave, so they can be turned back into text."""
        given = [given] if isinstance(given, str) or is_ids(given) else given
        if not isinstance(given, list):
            raise InputError("`inputs` must be a text, token ids, or a list of these.")
        self.check_count(given, "inputs")
        return [
            model.model.vocabulary.decode(item)
            if is_ids(item)
            else self.check_text(item, f"inputs.{i}")
            for i, item in enumerate(given)
        ]

    def _reading(self, exchange: Exchange, body: dict[str, Any], items: int) -> tuple[Terms, bool]:
        """The terms of a request, and whether texts that are too long lose their beginning."""
        truncate = flag(body, "truncate", default=True)
        left = choice(body, "truncation_direction", DIRECTIONS).lower() == "left"
        return self.terms(exchange, items, truncate=truncate), left

    def _answer(
        self, exchange: Exchange, reply: Any, answered: Answered, texts: Sequence[str]
    ) -> Answer:
        with exchange.part("serialize"):
            made = json_answer(reply, 200, told(answered))
        characters = sum(map(len, texts))
        made.headers.update(timing(exchange, characters, answered.tokens_total))
        return made


def _named(exchange: Exchange, body: dict[str, Any]) -> str | None:
    """The model asked for: by the path, or by the body."""
    name: str | None = exchange.request.path_params.get("model")
    return name or model_named(body)
