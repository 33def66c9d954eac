"""The keyword leg in PostgreSQL: our own terms in a tsvector with a GIN index, ranked by our own BM25.

PostgreSQL's text search configurations and ts_rank are not used: there is none for Korean, and ts_rank
knows no rare terms. A table of how many documents hold each term gives the idf.
"""

import json
from collections import Counter
from collections.abc import Sequence

from psycopg import Connection

from tailrace.stores.batches import check_analyzer
from tailrace.stores.documents import from_body
from tailrace.stores.filters import POSTGRES, condition
from tailrace.stores.port import (
    MATCHED_MAX,
    TERMS_MAX,
    Analyzer,
    Document,
    Filter,
    Indexed,
    KeywordLeg,
)
from tailrace.stores.postgres_database import PostgresDatabase, Row
from tailrace.stores.scoring import K1, B, field_terms, frequencies, idf, keyword_hits, rarest

CANDIDATES_MAX = 50_000
"""Documents that are ranked for one query: the rarest terms choose them."""

_LENGTHS = "SELECT count(*), coalesce(sum(length), 0) FROM documents WHERE row = ANY(%s)"


class PostgresTerms:
    """Writes, counts and finds terms."""

    def __init__(self, database: PostgresDatabase, analyzer: Analyzer) -> None:
        self._database = database
        self._analyzer = analyzer

    def columns(self, document: Document) -> tuple[str, str, str, int]:
        """Distinct terms, weighted frequencies, the fields' terms, and how many terms there are."""
        fields = field_terms(self._analyzer, document)
        counted = frequencies(fields)
        text = "\n".join(" ".join(terms) for terms in fields)
        return " ".join(counted), json.dumps(counted), text, sum(map(len, fields))

    def count(self, connection: Connection[Row], rows: Sequence[int], sign: int) -> None:
        """Add documents to what is known of all (`sign` 1), or take them away (-1) before they go."""
        connection.execute(
            "INSERT INTO terms SELECT term, %s * count(*) FROM documents, "
            "unnest(tsvector_to_array(lexemes)) AS term WHERE row = ANY(%s) GROUP BY term ORDER BY 1 "
            "ON CONFLICT (term) DO UPDATE SET documents = terms.documents + excluded.documents",
            (sign, list(rows)),
        )
        sums = connection.execute(_LENGTHS, (list(rows),)).fetchone() or (0, 0)
        for key, more in zip(("documents", "length"), sums, strict=True):
            connection.execute(
                "UPDATE meta SET value = (value::bigint + %s)::text WHERE key = %s",
                (sign * more, key),
            )

    def check(self, connection: Connection[Row]) -> None:
        """Raises AnalyzerMismatch where another process has indexed the store by another analyser."""
        query = "SELECT value FROM meta WHERE key = 'analyzer'"
        (held,) = connection.execute(query).fetchone() or ("",)
        check_analyzer(held, self._analyzer.fingerprint)

    def reindex(self, tell: Indexed) -> None:
        """Index every document again, in one transaction."""
        with self._database.writing() as connection:
            held = connection.execute("SELECT row, body FROM documents").fetchall()
            for done, (row, body) in enumerate(held, 1):
                connection.execute(
                    "UPDATE documents SET lexemes = array_to_tsvector(string_to_array(%s, ' ')), "
                    "frequencies = %s::jsonb, fields = %s, length = %s WHERE row = %s",
                    (*self.columns(from_body(body)), row),
                )
                tell(done, len(held))
            connection.execute("DELETE FROM terms")
            connection.execute("UPDATE meta SET value = '0' WHERE key IN ('documents', 'length')")
            rows = [row for (row,) in connection.execute("SELECT row FROM documents")]
            self.count(connection, rows, 1)
            connection.execute(
                "UPDATE meta SET value = %s WHERE key = 'analyzer'", (self._analyzer.fingerprint,)
            )

    def search(self, terms: Sequence[str], limit: int, where: Filter) -> KeywordLeg:
        """The best documents that hold any of the terms."""
        wanted = list(dict.fromkeys(terms))[:TERMS_MAX]
        with self._database.reading() as connection:
            query = "SELECT term, documents FROM terms WHERE term = ANY(%s) AND documents > 0"
            found = connection.execute(query, (wanted,)).fetchall()
            counts: Counter[str] = Counter(dict(found))
            choosing = rarest(counts, CANDIDATES_MAX)
            best = []
            if choosing and limit > 0:
                best = self._best(connection, choosing, counts, limit, where)
            held = _texts(connection, [row for row, _, _ in best[:MATCHED_MAX]])
        hits = keyword_hits(best, held, list(counts))
        return KeywordLeg(
            hits, {term: counts[term] for term in wanted}, exact=len(choosing) == len(counts)
        )

    def _best(
        self,
        connection: Connection[Row],
        choosing: Sequence[str],
        counts: Counter[str],
        limit: int,
        where: Filter,
    ) -> list[tuple[int, str, float]]:
        clause, values = condition(where, POSTGRES)
        meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        documents, length = int(meta["documents"]), int(meta["length"])
        average = max(1.0, length / max(1, documents))
        match = " | ".join(f"'{term}'" for term in choosing)
        known = list(counts)
        query = (
            "SELECT row, id, round(score::numeric, 6)::float8 AS rounded FROM (SELECT d.row, d.id, "
            f"sum(q.idf * f.freq * {K1 + 1} / (f.freq + {K1} * ({1 - B} + {B} * d.length / %s::float8)))"
            " AS score FROM (SELECT row, id, length, frequencies FROM documents WHERE "
            f"lexemes @@ %s::tsquery AND {clause}) d CROSS JOIN unnest(%s::text[], %s::float8[]) "
            "AS q (term, idf) CROSS JOIN LATERAL "
            "(SELECT (d.frequencies ->> q.term)::float8 AS freq) f "
            "WHERE f.freq IS NOT NULL GROUP BY d.row, d.id) scored ORDER BY 3 DESC, id LIMIT %s"
        )
        idfs = [idf(documents, counts[term]) for term in known]
        found = connection.execute(query, (average, match, *values, known, idfs, limit))
        return [(row, id_, score) for row, id_, score in found]


def _texts(connection: Connection[Row], rows: Sequence[int]) -> dict[int, str]:
    query = (
        "SELECT row, ' ' || replace(fields, E'\\n', ' ') || ' ' FROM documents WHERE row = ANY(%s)"
    )
    return dict(connection.execute(query, (list(rows),)).fetchall())
