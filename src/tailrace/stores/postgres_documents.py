"""Documents in PostgreSQL: the rows they stand in, and how they are written there."""

from collections.abc import Sequence

from psycopg import Connection

from tailrace.stores.documents import author_key, to_body
from tailrace.stores.port import Document
from tailrace.stores.postgres_database import Row
from tailrace.stores.postgres_terms import PostgresTerms

_COLUMNS = "id, digest, body, category, year, author, lexemes, frequencies, fields, length"


def write_documents(
    connection: Connection[Row], documents: Sequence[Document], terms: PostgresTerms
) -> None:
    """Insert them, or put them in the place of those with the same ids."""
    lines = [
        (
            document.id,
            document.digest,
            to_body(document),
            document.category,
            document.year,
            author_key(document.author),
            *terms.columns(document),
        )
        for document in documents
    ]
    excluded = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
    query = (
        f"INSERT INTO documents ({_COLUMNS}) SELECT a, b, c, d, e, f, "
        "array_to_tsvector(string_to_array(g, ' ')), h::jsonb, i, j FROM unnest(%s::text[], "
        "%s::text[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[], "
        "%s::text[], %s::int[]) AS given (a, b, c, d, e, f, g, h, i, j) "
        f"ON CONFLICT (id) DO UPDATE SET {excluded}"
    )
    if lines:
        connection.execute(query, [list(column) for column in zip(*lines, strict=True)])


def rows_of(connection: Connection[Row], ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Row and digest of each document that is held, by id."""
    query = "SELECT id, row, digest FROM documents WHERE id = ANY(%s)"
    found = connection.execute(query, (list(ids),))
    return {id_: (row, digest) for id_, row, digest in found}
