"""The keyword leg of the SQLite file: our own terms in FTS5, ranked by its field-weighted BM25.

Terms are always quoted, so no text is read as a query of FTS5.
"""

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection

from tailrace.stores.batches import check_analyzer
from tailrace.stores.documents import from_body
from tailrace.stores.filters import SQLITE, condition
from tailrace.stores.port import (
    FIELD_WEIGHTS,
    FIELDS,
    MATCHED_MAX,
    TERMS_MAX,
    Analyzer,
    Document,
    Filter,
    Indexed,
    KeywordHit,
    KeywordLeg,
)
from tailrace.stores.scoring import field_terms, keyword_hits, rarest
from tailrace.stores.sqlite_file import SqliteFile

POSTINGS_MAX = 5_000
"""Occurrences of terms that one query ranks: the rarest terms first, the rest is left out."""

TIES = 64
"""Hits read beyond the limit so that equal scores can be put in the order of their ids."""


class SqliteTerms:
    """Adds, removes and finds terms."""

    def __init__(
        self, file: SqliteFile, analyzer: Analyzer, weights: Mapping[str, float] = FIELD_WEIGHTS
    ) -> None:
        self._file = file
        self._analyzer = analyzer
        self._weights = ", ".join(str(float(weights[name])) for name in FIELDS)

    def fields(self, document: Document) -> list[str]:
        """What is written for a document: the terms of each field, between spaces."""
        return [" ".join(terms) for terms in field_terms(self._analyzer, document)]

    def add(self, connection: Connection, row: int, fields: Sequence[str]) -> None:
        """Index a document."""
        marks = ",".join("?" * (len(FIELDS) + 1))
        columns = ", ".join(FIELDS)
        connection.execute(f"INSERT INTO terms (rowid, {columns}) VALUES ({marks})", (row, *fields))

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Take documents out of the index."""
        connection.executemany("DELETE FROM terms WHERE rowid = ?", ((row,) for row in rows))

    def check(self, connection: Connection) -> None:
        """Raises AnalyzerMismatch where another process has indexed the file by another analyser."""
        held = connection.execute("SELECT value FROM meta WHERE key = 'analyzer'").fetchone()[0]
        check_analyzer(held, self._analyzer.fingerprint)

    def reindex(self, tell: Indexed) -> None:
        """Index every document again, in one transaction."""
        with self._file.writing() as connection:
            connection.execute("DELETE FROM terms")
            held = connection.execute("SELECT row, body FROM documents").fetchall()
            for done, (row, body) in enumerate(held, 1):
                self.add(connection, row, self.fields(from_body(body)))
                tell(done, len(held))
            connection.execute(
                "UPDATE meta SET value = ? WHERE key = 'analyzer'", (self._analyzer.fingerprint,)
            )

    def search(self, terms: Sequence[str], limit: int, where: Filter) -> KeywordLeg:
        """The best documents that hold any of the terms."""
        wanted = list(dict.fromkeys(terms))[:TERMS_MAX]
        with self._file.reading() as connection:
            counts = _counts(connection, wanted)
            known = [term for term in wanted if counts.get(term)]
            used = rarest(counts, POSTINGS_MAX)
            best = self._best(connection, used, limit, where) if used and limit > 0 else []
            hits = _hits(connection, best, known)
        return KeywordLeg(
            hits, {term: counts.get(term, 0) for term in wanted}, exact=len(used) == len(known)
        )

    def _best(
        self, connection: Connection, terms: Sequence[str], limit: int, where: Filter
    ) -> list[tuple[int, str, float]]:
        """Rows, ids and scores of the best, equal scores by id."""
        clause, values = condition(where, SQLITE)
        among = "" if not values else f"AND rowid IN (SELECT row FROM documents WHERE {clause})"
        query = (
            "SELECT f.row, d.id, round(-f.score, 6) FROM (SELECT rowid AS row, "
            f"bm25(terms, {self._weights}) AS score FROM terms WHERE terms MATCH ? {among} "
            "ORDER BY score LIMIT ?) f CROSS JOIN documents d WHERE d.row = f.row"
        )
        match = " OR ".join(f'"{term}"' for term in terms)
        read = limit + TIES
        while True:
            found = connection.execute(query, (match, *values, read)).fetchall()
            found.sort(key=lambda line: (-line[2], line[1]))
            if len(found) < read or found[-1][2] < found[limit - 1][2]:
                return found[:limit]
            read *= 4


def _counts(connection: Connection, terms: Sequence[str]) -> dict[str, int]:
    query = "SELECT term, doc FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(query, (json.dumps(list(terms)),)))


def _hits(
    connection: Connection, best: Sequence[tuple[int, str, float]], terms: Sequence[str]
) -> tuple[KeywordHit, ...]:
    text = " || ' ' || ".join(("''", *FIELDS, "''"))
    query = f"SELECT rowid, {text} FROM terms WHERE rowid IN (SELECT value FROM json_each(?))"
    rows = json.dumps([row for row, _, _ in best[:MATCHED_MAX]])
    return keyword_hits(best, dict(connection.execute(query, (rows,))), terms)
